//! Names of rows: bytes in whose order the rows stand.

/// A kind of row. Two kinds never share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Space(&'static str);

/// Which row: its space, its partition, and what it is called among the rows of both.
///
/// A name's parts are compared in their order, texts by their bytes and numbers by their values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowName {
    space: Space,
    key: Vec<u8>,
    partition_bytes: usize,
}

/// Rows of one space that stand together, bounded in number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowRange {
    space: Space,
    /// The bytes of the one partition; none where it is not one.
    partition: Option<Vec<u8>>,
    from: Vec<u8>,
    /// The first that is not in it; none is the end of the space.
    until: Option<Vec<u8>>,
    rows_max: usize,
}

/// A part of text ends with this, which no text contains as it is written in a name.
const TEXT_END: [u8; 2] = [0, 1];
/// In the place of a zero byte, so that [`TEXT_END`] sorts before whatever a text goes on with.
const ZERO: [u8; 2] = [0, 0xff];

impl Space {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self(name)
    }

    pub(crate) fn name(self) -> &'static str {
        self.0
    }
}

impl RowName {
    /// The row that is named by its partition alone, to which parts may be added.
    pub(crate) fn of(space: Space, partition: &str) -> Self {
        let key = partition_key(partition);
        Self {
            space,
            partition_bytes: key.len(),
            key,
        }
    }

    /// The row that is stored under a key, if it is one.
    pub(crate) fn read(space: Space, key: &[u8]) -> Option<Self> {
        let partition_bytes = partition_of(key)?.len();
        let key = key.to_vec();
        Some(Self {
            space,
            key,
            partition_bytes,
        })
    }

    /// Whose it is.
    pub(crate) fn partition_text(&self) -> String {
        let end = self.partition_bytes - TEXT_END.len();
        let mut text = Vec::with_capacity(end);
        let mut after_zero = false;
        for byte in &self.key[..end] {
            if !after_zero {
                text.push(*byte);
            }
            // What follows a zero byte within a text belongs to it.
            after_zero = *byte == 0 && !after_zero;
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// With a part of text.
    pub(crate) fn text(mut self, part: &str) -> Self {
        push_text(&mut self.key, part.as_bytes());
        self.key.extend(TEXT_END);
        self
    }

    /// With a number of 32 bits.
    pub(crate) fn number(mut self, part: u32) -> Self {
        self.key.extend(part.to_be_bytes());
        self
    }

    /// With a number of 64 bits.
    pub(crate) fn long(mut self, part: u64) -> Self {
        self.key.extend(part.to_be_bytes());
        self
    }

    /// With an id of 128 bits.
    pub(crate) fn id(mut self, part: u128) -> Self {
        self.key.extend(part.to_be_bytes());
        self
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// The partition's part of the key.
    pub(crate) fn partition(&self) -> &[u8] {
        &self.key[..self.partition_bytes]
    }

    /// What the row is stored under in its space; it begins with its partition.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

impl RowRange {
    /// Every row of a space.
    pub(crate) fn all(space: Space, rows_max: usize) -> Self {
        Self {
            space,
            partition: None,
            from: Vec::new(),
            until: None,
            rows_max,
        }
    }

    /// The rows whose names begin with the parts of this one.
    pub(crate) fn under(name: &RowName, rows_max: usize) -> Self {
        Self {
            space: name.space,
            partition: Some(name.partition().to_owned()),
            from: name.key.clone(),
            until: following(&name.key),
            rows_max,
        }
    }

    /// Those whose next part is a text that begins with a prefix.
    pub(crate) fn prefixed(name: &RowName, prefix: &str, rows_max: usize) -> Self {
        let mut from = name.key.clone();
        push_text(&mut from, prefix.as_bytes());
        Self {
            until: following(&from),
            from,
            ..Self::under(name, rows_max)
        }
    }

    /// Only rows from this name on.
    pub(crate) fn from(mut self, name: &RowName) -> Self {
        if name.key > self.from {
            self.from.clone_from(&name.key);
        }
        self
    }

    /// Only rows after this name, and those that it begins.
    pub(crate) fn after(mut self, name: &RowName) -> Self {
        if let Some(from) = following(&name.key)
            && from > self.from
        {
            self.from = from;
        }
        self
    }

    /// Only rows before this name.
    pub(crate) fn before(mut self, name: &RowName) -> Self {
        if self.until.as_ref().is_none_or(|until| name.key < *until) {
            self.until = Some(name.key.clone());
        }
        self
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// The partition's part of all keys; `None` where it is not one.
    pub(crate) fn partition(&self) -> Option<&[u8]> {
        self.partition.as_deref()
    }

    pub(crate) fn rows_max(&self) -> usize {
        self.rows_max
    }

    /// The first key that is in it, and the first that is not any more, if the range is not empty.
    pub(crate) fn bounds(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let until = self.until.as_deref();
        until
            .is_none_or(|until| self.from.as_slice() < until)
            .then_some((&self.from, until))
    }
}

/// The partition's part of a stored key.
pub(crate) fn partition_of(key: &[u8]) -> Option<&[u8]> {
    // Within a text, a zero byte is followed by another than here.
    let end = key
        .windows(TEXT_END.len())
        .position(|two| two == TEXT_END)?;
    key.get(..end + TEXT_END.len())
}

/// A partition's part of a key.
pub(super) fn partition_key(partition: &str) -> Vec<u8> {
    // Room for most names.
    let mut key = Vec::with_capacity(96);
    push_text(&mut key, partition.as_bytes());
    key.extend(TEXT_END);
    key
}

fn push_text(key: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            0 => key.extend(ZERO),
            other => key.push(*other),
        }
    }
}

/// The first key after all that begin with these bytes.
fn following(key: &[u8]) -> Option<Vec<u8>> {
    let last = key.iter().rposition(|byte| *byte != 0xff)?;
    let mut following = key[..=last].to_vec();
    following[last] += 1;
    Some(following)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::time::Duration;

    use arbtest::arbtest;

    use super::*;

    const SPACE: Space = Space::new("tests");

    #[test]
    fn names_stand_in_the_order_of_their_parts() {
        arbtest(|u| {
            let mut any = || -> arbtest::arbitrary::Result<_> {
                let bytes = u.bytes(2)?;
                let text: String = bytes.iter().map(|byte| char::from(byte % 3)).collect();
                Ok((text, u.arbitrary::<u32>()?, u.arbitrary::<u128>()?))
            };
            let ((a, n, i), (b, m, j)) = (any()?, any()?);
            let named = |text: &str, number, id| {
                let name = RowName::of(SPACE, text);
                name.text(text).number(number).id(id)
            };
            let order: Ordering = (&a, n, i).cmp(&(&b, m, j));
            assert_eq!(named(&a, n, i).key().cmp(named(&b, m, j).key()), order);
            Ok(())
        })
        .budget(Duration::from_secs(1));
    }

    #[test]
    fn a_name_is_read_from_its_key() {
        for partition in ["", "a", "\0", "a\0\u{1}b", "\0\0\u{1}", "\u{1}ü"] {
            let name = RowName::of(SPACE, partition).text("b\0").number(1);
            let read = RowName::read(SPACE, name.key()).expect("a name");
            assert_eq!((&read, &*read.partition_text()), (&name, partition));
        }
        assert_eq!(RowName::read(SPACE, b"no end"), None);
    }

    #[test]
    fn a_range_holds_what_its_name_begins_and_nothing_else() {
        let partition = RowName::of(SPACE, "a");
        let inside = |range: &RowRange, name: &RowName| {
            range.bounds().is_some_and(|(from, until)| {
                from <= name.key() && until.is_none_or(|until| name.key() < until)
            })
        };
        let names = ["", "\0", "a", "ab", "b\u{10ffff}", "c"];
        let all = RowRange::under(&partition, 9);
        let prefixed = RowRange::prefixed(&partition, "a", 9);
        for text in names {
            let name = partition.clone().text(text);
            assert!(inside(&all, &name) && !inside(&all, &RowName::of(SPACE, "ab").text(text)));
            assert_eq!(inside(&prefixed, &name), text.starts_with('a'), "{text:?}");
            let after = all.clone().after(&partition.clone().text("a"));
            assert_eq!(inside(&after, &name), text > "a", "{text:?}");
            let before = all.clone().before(&partition.clone().text("ab"));
            assert_eq!(inside(&before, &name), text < "ab", "{text:?}");
            let from = all.clone().from(&partition.clone().text("ab"));
            assert_eq!(inside(&from, &name), text >= "ab", "{text:?}");
        }
    }
}
