//! TOML that cannot be read, told in one line.

/// Where and why a TOML file cannot be read, in one line: toml's own message draws the place over five.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct MalformedToml {
    line: usize,
    column: usize,
    message: String,
}

impl MalformedToml {
    pub(crate) fn new(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |line| line.chars().count());
        Self {
            line: before.matches('\n').count() + 1,
            column: column + 1,
            message: error.message().to_owned(),
        }
    }
}
