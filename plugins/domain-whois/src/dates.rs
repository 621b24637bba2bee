//! Dates as registries write them, to RFC 3339 in UTC.
//!
//! A time without a zone counts as UTC, but where the registry is known to write its own (`assumed_hours`). A day
//! without a time is its beginning in UTC: it stays the day that was written.

use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

/// Pieces of a date's text that are looked at.
const PIECES_MAX: usize = 32;
/// Years that a registration can have; others are placeholders.
const YEARS: std::ops::RangeInclusive<i32> = 1980..=2199;

/// Zones by the names that registries write, in minutes east of UTC.
const ZONES: &[(i32, &str)] = &[
    (-480, "pst"),
    (-420, "mst pdt"),
    (-360, "cst mdt"),
    (-300, "est cdt"),
    (-240, "clt edt"),
    (-180, "brt art clst"),
    (0, "utc gmt z wet"),
    (60, "west bst cet met"),
    (120, "cest mest eet"),
    (180, "eest msk trt"),
    (330, "ist"),
    (420, "ict wib"),
    (480, "hkt sgt myt awst"),
    (540, "jst kst"),
    (600, "aest"),
    (660, "aedt"),
    (720, "nzst"),
    (780, "nzdt"),
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// A piece of a date's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Number(&'t str),
    Word(&'t str),
    Mark(char),
}

/// The moment that a text names, or nothing where it names none exactly. `assumed_hours` are those east of UTC of a
/// time without a zone.
pub(crate) fn read(text: &str, assumed_hours: i32) -> Option<String> {
    let pieces = pieces(text);
    let clock = pieces.windows(3).position(
        |three| matches!(three, [Piece::Number(hours), Piece::Mark(':'), Piece::Number(_)] if hours.len() <= 2),
    );
    // What stands after a sign is a zone and no time: `2021-05-01+02:00`.
    let clock = clock.filter(|at| {
        at.checked_sub(1).and_then(|before| pieces.get(before)) != Some(&Piece::Mark('+'))
    });
    let (day, rest) = pieces.split_at(clock.unwrap_or(pieces.len()));
    // Such a number is a date wherever it stands: some registries put the editor before it.
    let compact = day.iter().find_map(|piece| match piece {
        Piece::Number(digits) if matches!(digits.len(), 8 | 14) => Some(*digits),
        _ => None,
    });
    let date = match compact {
        Some(digits) => date(
            digits[..4].parse().ok()?,
            digits[4..6].parse().ok()?,
            digits[6..8].parse().ok()?,
        )?,
        None => written_date(day, rest)?,
    };
    let (time, offset) = match (compact, clock) {
        (Some(digits), _) if digits.len() == 14 => (
            Time::from_hms(
                digits[8..10].parse().ok()?,
                digits[10..12].parse().ok()?,
                digits[12..].parse().ok()?,
            )
            .ok()?,
            0,
        ),
        (_, Some(_)) => {
            let (time, used) = written_time(rest)?;
            (time, zone(&rest[used..]).unwrap_or(assumed_hours * 60))
        }
        (_, None) => (Time::MIDNIGHT, 0),
    };
    let offset = UtcOffset::from_whole_seconds(offset * 60).ok()?;
    let moment = PrimitiveDateTime::new(date, time)
        .assume_offset(offset)
        .to_offset(UtcOffset::UTC);
    let (year, month, day) = moment.to_calendar_date();
    let (hour, minute, second) = moment.to_hms();
    Some(format!(
        "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
        u8::from(month)
    ))
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next().filter(|_| pieces.len() < PIECES_MAX) {
        let end = |kind: fn(char) -> bool| rest.find(|c| !kind(c)).unwrap_or(rest.len());
        let length = match first {
            '0'..='9' => end(|c| c.is_ascii_digit()),
            first if first.is_alphabetic() => end(char::is_alphabetic),
            first => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        match first {
            '0'..='9' => pieces.push(Piece::Number(piece)),
            first if first.is_alphabetic() => pieces.push(Piece::Word(piece)),
            first if first.is_whitespace() => {}
            first => pieces.push(Piece::Mark(first)),
        }
        rest = after;
    }
    pieces
}

/// Year, month and day in any of their orders. After a month and a day the year may stand behind the time.
fn written_date(day: &[Piece<'_>], after: &[Piece<'_>]) -> Option<Date> {
    let mut parts: Vec<Piece<'_>> = Vec::new();
    for piece in day {
        match piece {
            Piece::Number(_) => parts.push(*piece),
            Piece::Word(word) if month(word).is_some() => parts.push(*piece),
            Piece::Word(word)
                if word.eq_ignore_ascii_case("before") || word.eq_ignore_ascii_case("circa") =>
            {
                return None;
            }
            Piece::Word(_) | Piece::Mark(_) => {}
        }
    }
    if parts.len() == 2 {
        parts.extend(
            after
                .iter()
                .find(|piece| matches!(piece, Piece::Number(digits) if digits.len() == 4)),
        );
    }
    let [first, second, third] = parts.get(..3)? else {
        return None;
    };
    let number = |piece: &Piece<'_>| match piece {
        Piece::Number(digits) if digits.len() <= 4 => digits.parse::<i32>().ok(),
        _ => None,
    };
    let word = |piece: &Piece<'_>| match piece {
        Piece::Word(word) => month(word),
        _ => None,
    };
    let is_year = |piece: &Piece<'_>| matches!(piece, Piece::Number(digits) if digits.len() == 4);
    let (first_word, second_word) = (word(first), word(second));
    let (year, month, day) = match (first_word, second_word) {
        (Some(month), None) => (number(third)?, month, number(second)?),
        (None, Some(month)) if is_year(first) => (number(first)?, month, number(third)?),
        (None, Some(month)) => (number(third)?, month, number(first)?),
        (None, None) if is_year(first) => (number(first)?, number(second)?, number(third)?),
        // The day stands first but where that cannot be.
        (None, None) if number(second)? > 12 => (number(third)?, number(first)?, number(second)?),
        (None, None) => (number(third)?, number(second)?, number(first)?),
        (Some(_), Some(_)) => return None,
    };
    date(year, month, day)
}

fn month(word: &str) -> Option<i32> {
    let word = word.to_ascii_lowercase();
    let short = word.get(..3)?;
    let number = MONTHS.iter().position(|month| *month == short)?;
    // "Mars" and "Sept" are months; "Market" is none.
    (word.len() <= 9).then_some(i32::try_from(number + 1).ok()?)
}

fn date(year: i32, month: i32, day: i32) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    YEARS
        .contains(&year)
        .then(|| Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok())?
}

/// The time at the beginning, and how many pieces it took.
fn written_time(pieces: &[Piece<'_>]) -> Option<(Time, usize)> {
    let number = |at: usize| match pieces.get(at) {
        Some(Piece::Number(digits)) if digits.len() <= 2 => digits.parse::<u8>().ok(),
        _ => None,
    };
    let mark = |at: usize, wanted: char| pieces.get(at) == Some(&Piece::Mark(wanted));
    let (mut hours, minutes) = (number(0)?, number(2)?);
    let mut used = 3;
    let mut seconds = 0;
    if let Some(written) = number(4).filter(|_| mark(3, ':')) {
        (seconds, used) = (written, 5);
        if (mark(5, '.') || mark(5, ',')) && matches!(pieces.get(6), Some(Piece::Number(_))) {
            used = 7;
        }
    }
    match pieces.get(used) {
        Some(Piece::Word(word)) if word.eq_ignore_ascii_case("pm") && hours < 12 => hours += 12,
        Some(Piece::Word(word)) if word.eq_ignore_ascii_case("am") && hours == 12 => hours = 0,
        _ => {}
    }
    Time::from_hms(hours, minutes, seconds)
        .ok()
        .map(|time| (time, used))
}

/// The first zone that is written, in minutes east of UTC: a name, an offset, or both (`UTC+8`).
fn zone(pieces: &[Piece<'_>]) -> Option<i32> {
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Word(word) => {
                let word = word.to_ascii_lowercase();
                let named = ZONES
                    .iter()
                    .find(|(_, names)| names.split(' ').any(|name| name == word))
                    .map(|(minutes, _)| *minutes);
                if let Some(minutes) = named {
                    return Some(offset(&pieces[at + 1..]).unwrap_or(minutes));
                }
            }
            Piece::Mark('+' | '-') => return offset(&pieces[at..]),
            Piece::Mark(_) | Piece::Number(_) => {}
        }
    }
    None
}

/// `+2`, `+02`, `+0200` or `+02:00` at the beginning.
fn offset(pieces: &[Piece<'_>]) -> Option<i32> {
    let [
        Piece::Mark(sign @ ('+' | '-')),
        Piece::Number(digits),
        rest @ ..,
    ] = pieces
    else {
        return None;
    };
    let (hours, minutes) = match digits.len() {
        4 => (
            digits[..2].parse::<i32>().ok()?,
            digits[2..].parse::<i32>().ok()?,
        ),
        1 | 2 => match rest {
            [Piece::Mark(':'), Piece::Number(minutes), ..] => {
                (digits.parse().ok()?, minutes.parse().ok()?)
            }
            _ => (digits.parse().ok()?, 0),
        },
        _ => return None,
    };
    let minutes = hours * 60 + minutes;
    (minutes <= 14 * 60).then_some(if *sign == '-' { -minutes } else { minutes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(read(text, 0).as_deref(), Some(expected), "{text:?}");
    }

    #[test]
    fn days_are_read_in_every_order() {
        for text in [
            "2021-05-01",
            "2021/05/01",
            "2021.05.01",
            "2021. 05. 01.",
            "20210501",
            "20210501 #12345",
            "01-May-2021",
        ] {
            check(text, "2021-05-01T00:00:00Z");
        }
        for text in [
            "1 May 2021",
            "May 1, 2021",
            "1.5.2021",
            "01/05/2021",
            "2021-May-01.",
            "01 mai 2021",
            "Sat, 1 May 2021",
        ] {
            check(&text.replace("mai", "may"), "2021-05-01T00:00:00Z");
        }
        check("05/31/2021", "2021-05-31T00:00:00Z");
        check("2021-05-01+02:00", "2021-05-01T00:00:00Z");
    }

    #[test]
    fn times_are_read_with_their_zone() {
        check("2021-05-01T12:00:05Z", "2021-05-01T12:00:05Z");
        check("2021-05-01T12:00:05.123456Z", "2021-05-01T12:00:05Z");
        check("2021-05-01T01:00:05+02:00", "2021-04-30T23:00:05Z");
        check("2021-05-01 12:00:05+0530", "2021-05-01T06:30:05Z");
        check("2021-05-01 12:00:05-03", "2021-05-01T15:00:05Z");
        check("2021/05/01 01:05:04 (JST)", "2021-04-30T16:05:04Z");
        check("2021-05-01 12:00:05 (UTC+8)", "2021-05-01T04:00:05Z");
        check("2021-05-01 12:00:05 GMT+3:00", "2021-05-01T09:00:05Z");
        check("2021-05-01 12:00:05 CEST", "2021-05-01T10:00:05Z");
        check("Sat May 01 12:00:05 GMT 2021", "2021-05-01T12:00:05Z");
        check("01-May-2021 12:00:05 UTC", "2021-05-01T12:00:05Z");
        check("1.5.2021 12:00:05", "2021-05-01T12:00:05Z");
        check("5/1/2021 1:00:05 PM", "2021-01-05T13:00:05Z");
        check("20210501120005", "2021-05-01T12:00:05Z");
        check("2021-05-01 12:00", "2021-05-01T12:00:00Z");
        assert_eq!(
            read("2021-05-01 12:00:05", 8).as_deref(),
            Some("2021-05-01T04:00:05Z")
        );
        assert_eq!(
            read("2021-05-01", 8).as_deref(),
            Some("2021-05-01T00:00:00Z")
        );
    }

    #[test]
    fn what_names_no_moment_is_none() {
        let none = [
            "",
            "before Aug-1996",
            "before 1 January 1996",
            "1 year",
            "2021-13-01",
            "2021-02-30",
            "0001-01-01",
            "REDACTED",
        ];
        for text in none.into_iter().chain([
            "2021-05-01 25:00:00",
            "May 2021",
            "12345",
            "1970-01-01T00:00:00Z",
        ]) {
            assert_eq!(read(text, 0), None, "{text:?}");
        }
    }
}
