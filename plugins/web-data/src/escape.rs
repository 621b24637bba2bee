//! Keeps a page's text from being read as Markdown.
//!
//! It must know nothing of pages. Only what would be read as syntax is escaped: `snake_case` and `3 * 4` stay as they are.

/// Escapes running text; nothing where there is nothing to escape.
pub(crate) fn inline(text: &str, in_cell: bool) -> Option<String> {
    if !text.bytes().any(|byte| matches!(byte, b'\\' | b'`' | b'*' | b'_' | b'[' | b']' | b'<' | b'|' | b'~' | b'&')) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.as_str().chars().next().unwrap_or(' ');
        let is_syntax = match c {
            '\\' | '`' | '[' | ']' => true,
            '*' => !(before.is_whitespace() && after.is_whitespace()),
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric() || before == ' ' && after == ' '),
            '<' => after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?'),
            '~' => after == '~' || before == '~',
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

/// Whether what follows an ampersand makes a character reference of it.
fn is_reference(rest: &str) -> bool {
    let end = rest.bytes().take(32).position(|byte| !byte.is_ascii_alphanumeric() && byte != b'#');
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
            if level <= 6 && follows(level) { format!("\\{line}") } else { line.to_owned() }
        }
        Some(b'>') => format!("\\{line}"),
        Some(b'-' | b'+') if follows(1) => format!("\\{line}"),
        Some(b'-' | b'=') if line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' ')) => format!("\\{line}"),
        Some(b'0'..=b'9') if digits <= 9 && matches!(marker, b'.' | b')') && follows(digits + 1) => {
            format!("{}\\{}", &line[..digits], &line[digits..])
        }
        Some(_) | None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(inline(text, true).unwrap_or_else(|| text.to_owned()), expected);
    }

    #[test]
    fn only_syntax_is_escaped() {
        check("snake_case and 3 * 4", "snake_case and 3 * 4");
        check("*not* _this_ [x] `y` \\", "\\*not\\* \\_this\\_ \\[x\\] \\`y\\` \\\\");
        check("a < b <script> </p>", "a < b \\<script> \\</p>");
        check("a|b ~~c~~ ~d", "a\\|b \\~\\~c\\~\\~ ~d");
        check("AT&T &amp; &#39; & co; R&D;", "AT&T \\&amp; \\&#39; & co; R\\&D;");
    }

    #[test]
    fn a_line_does_not_become_a_block() {
        let expected = "\\# a\n#b\n\\> c\n\\- d\n-e\n12\\. f\n1.5 g\n\\---\n1234567890. h";
        assert_eq!(line_starts("# a\n#b\n> c\n- d\n-e\n12. f\n1.5 g\n---\n1234567890. h"), expected);
    }
}
