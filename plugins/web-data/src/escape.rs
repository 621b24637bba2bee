//! Keeps a page's text from being read as Markdown.
//!
//! It must know nothing of pages. Only what would be read as syntax is escaped: `snake_case` and `3 * 4` stay as they are.

/// Bytes of a reference to a character between its ampersand and its semicolon.
const REFERENCE_BYTES_MAX: usize = 32;
/// What stands beside a piece of text: other text, markup, nothing.
const UNKNOWN: char = '\0';

/// Escapes a piece of running text; nothing where there is nothing to escape. At its ends all is escaped that something
/// before or behind it could make syntax of, but for references (see [`reference_across`]).
pub(crate) fn inline(text: &str, in_cell: bool) -> Option<String> {
    if !text.bytes().any(|byte| {
        matches!(
            byte,
            b'\\' | b'`' | b'*' | b'_' | b'[' | b']' | b'<' | b'|' | b'~' | b'&'
        )
    }) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = UNKNOWN;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.as_str().chars().next().unwrap_or(UNKNOWN);
        let is_syntax = match c {
            '\\' | '`' | '[' | ']' => true,
            '*' => !(before.is_whitespace() && after.is_whitespace()),
            '_' => {
                !(before.is_alphanumeric() && after.is_alphanumeric()
                    || before == ' ' && after == ' ')
            }
            '<' => after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?' | UNKNOWN),
            '~' => matches!(after, '~' | UNKNOWN) || before == '~',
            '|' => in_cell,
            '&' => is_reference(rest.as_str()),
            _ => false,
        };
        if is_syntax {
            escaped.push('\\');
        }
        escaped.push(c);
        before = c;
    }
    Some(escaped)
}

/// The place of an ampersand in written text that becomes a reference by the text that is written next: pages split them.
pub(crate) fn reference_across(written: &str, next: &str) -> Option<usize> {
    let tail = written.len()
        - written
            .bytes()
            .rev()
            .take(REFERENCE_BYTES_MAX)
            .take_while(is_of_reference)
            .count();
    let at = tail
        .checked_sub(1)
        .filter(|at| written.as_bytes()[*at] == b'&')?;
    let escapes = written[..at]
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'\\')
        .count();
    let head = next
        .bytes()
        .take(REFERENCE_BYTES_MAX)
        .take_while(|byte| is_of_reference(byte) || *byte == b';')
        .count();
    (escapes % 2 == 0 && is_reference(&format!("{}{}", &written[at + 1..], &next[..head])))
        .then_some(at)
}

fn is_of_reference(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'#'
}

/// Whether what follows an ampersand makes a character reference of it.
fn is_reference(rest: &str) -> bool {
    let end = rest
        .bytes()
        .take(REFERENCE_BYTES_MAX)
        .position(|byte| !is_of_reference(&byte));
    end.is_some_and(|end| end > 0 && rest.as_bytes()[end] == b';')
}

/// Escapes what would begin a heading, a quote, a list or a rule at the begin of a line.
pub(crate) fn line_starts(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(line_start).collect();
    lines.join("\n")
}

fn line_start(line: &str) -> String {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = line.as_bytes().get(digits).copied().unwrap_or_default();
    let follows = |at: usize| line.as_bytes().get(at).is_none_or(|byte| *byte == b' ');
    match line.as_bytes().first() {
        Some(b'#') => {
            let level = line.bytes().take_while(|byte| *byte == b'#').count();
            if level <= 6 && follows(level) {
                format!("\\{line}")
            } else {
                line.to_owned()
            }
        }
        Some(b'>') => format!("\\{line}"),
        Some(b'-' | b'+') if follows(1) => format!("\\{line}"),
        Some(b'-' | b'=') if line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' ')) => {
            format!("\\{line}")
        }
        Some(b'0'..=b'9')
            if digits <= 9 && matches!(marker, b'.' | b')') && follows(digits + 1) =>
        {
            format!("{}\\{}", &line[..digits], &line[digits..])
        }
        Some(_) | None => line.to_owned(),
    }
}

/// Ends the code in running text that cut Markdown leaves open, without making it longer: what follows would be read as
/// code, and the code as markup.
pub(crate) fn end_code(text: &mut String) {
    let Some((at, run)) = open_code(text) else {
        return;
    };
    let begin = at + run;
    for _ in 0..=run {
        if text.len() > begin {
            text.pop();
        }
    }
    text.truncate(text.trim_end_matches('`').len().max(begin));
    if text.len() > begin {
        text.extend(std::iter::repeat_n('`', run));
    } else {
        text.truncate(at);
    }
}

/// The place and the length of the backticks that begin code which does not end in the last line. Code in running text
/// stands in one line, and in a fence there is none.
fn open_code(text: &str) -> Option<(usize, usize)> {
    let mut fence = 0;
    for line in text.lines() {
        let line = line
            .trim_start_matches([' ', '>', '-', '.'])
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let line = line.trim_start_matches(['.', ' ']);
        let run = line.len() - line.trim_start_matches('`').len();
        match fence {
            0 if run >= 3 && !line[run..].contains('`') => fence = run,
            open if open > 0 && run >= open && line.len() == run => fence = 0,
            _ => {}
        }
    }
    if fence > 0 {
        return None;
    }
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let bytes = text.as_bytes();
    let (mut at, mut open) = (line, None);
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
        match (bytes[at], open) {
            (b'\\', None) => at += 2,
            (b'`', None) => (open, at) = (Some((at, run)), at + run),
            (b'`', Some((_, begun))) => {
                open = open.filter(|_| run != begun);
                at += run;
            }
            _ => at += 1,
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(
            inline(text, true).unwrap_or_else(|| text.to_owned()),
            expected
        );
    }

    #[test]
    fn only_syntax_is_escaped() {
        check("snake_case and 3 * 4", "snake_case and 3 * 4");
        check(
            "*not* _this_ [x] `y` \\",
            "\\*not\\* \\_this\\_ \\[x\\] \\`y\\` \\\\",
        );
        check("a < b <script> </p>", "a < b \\<script> \\</p>");
        check("a|b ~~c~~ ~d", "a\\|b \\~\\~c\\~\\~ ~d");
        check("a < b <", "a < b \\<");
        check(
            "AT&T &amp; &#39; & co; R&D;",
            "AT&T \\&amp; \\&#39; & co; R\\&D;",
        );
    }

    #[test]
    fn a_line_does_not_become_a_block() {
        let expected = "\\# a\n#b\n\\> c\n\\- d\n-e\n12\\. f\n1.5 g\n\\---\n1234567890. h";
        assert_eq!(
            line_starts("# a\n#b\n> c\n- d\n-e\n12. f\n1.5 g\n---\n1234567890. h"),
            expected
        );
    }
}
