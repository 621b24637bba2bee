//! Which regular expressions a schema may hold: those that every engine reads alike and none takes long for.
//!
//! Whoever wrote a plugin wrote its patterns, and clients run them over what their users type. Pure functions over text.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    AssertionKind, Ast, ClassSetBinaryOp, ClassSetItem, ErrorKind, GroupKind, Span, Visitor, visit,
};

/// A pattern that may not be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(crate) enum PatternError {
    #[error("it cannot be parsed: {0}")]
    Syntax(String),
    #[error("`{0}` needs backtracking, which has no time limit")]
    Backtracking(String),
    #[error("`{0}` means something else in other regex engines")]
    Dialect(String),
    #[error("it must begin with ^ and end with $, with alternatives in a group")]
    Anchors,
}

/// Checks a pattern; `anchored` ones must say what the whole text is.
pub(crate) fn check(pattern: &str, anchored: bool) -> Result<(), PatternError> {
    let ast = Parser::new().parse(pattern).map_err(|error| {
        let part = part(pattern, error.span());
        match error.kind() {
            ErrorKind::UnsupportedBackreference | ErrorKind::UnsupportedLookAround => {
                PatternError::Backtracking(part)
            }
            kind => PatternError::Syntax(kind.to_string()),
        }
    })?;
    visit(&ast, Dialect(pattern))?;
    if !anchored || is_anchored(&ast) {
        Ok(())
    } else {
        Err(PatternError::Anchors)
    }
}

/// `^a|b$` begins and ends with an anchor too, and holds neither of its alternatives.
fn is_anchored(ast: &Ast) -> bool {
    let is = |ast: Option<&Ast>, kind| matches!(ast, Some(Ast::Assertion(assertion)) if assertion.kind == kind);
    match ast {
        Ast::Concat(whole) => {
            is(whole.asts.first(), AssertionKind::StartLine)
                && is(whole.asts.last(), AssertionKind::EndLine)
        }
        _ => false,
    }
}

fn part(pattern: &str, span: &Span) -> String {
    pattern
        .get(span.start.offset..span.end.offset)
        .unwrap_or(pattern)
        .to_owned()
}

/// Looks for what this host's engine has and a client's may not: flags (one of which moves the anchors), named classes,
/// nested classes, and its own assertions.
struct Dialect<'p>(&'p str);

impl Dialect<'_> {
    fn refuse(&self, span: &Span) -> Result<(), PatternError> {
        Err(PatternError::Dialect(part(self.0, span)))
    }
}

impl Visitor for Dialect<'_> {
    type Output = ();
    type Err = PatternError;

    fn finish(self) -> Result<(), PatternError> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), PatternError> {
        use AssertionKind::{EndLine, NotWordBoundary, StartLine, WordBoundary};
        match ast {
            Ast::Flags(flags) => self.refuse(&flags.span),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) if !flags.items.is_empty() => {
                    self.refuse(&flags.span)
                }
                GroupKind::CaptureName {
                    starts_with_p: true,
                    ..
                } => self.refuse(&group.span),
                _ => Ok(()),
            },
            Ast::Assertion(assertion) => match assertion.kind {
                StartLine | EndLine | WordBoundary | NotWordBoundary => Ok(()),
                _ => self.refuse(&assertion.span),
            },
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), PatternError> {
        match item {
            ClassSetItem::Ascii(class) => self.refuse(&class.span),
            ClassSetItem::Bracketed(class) => self.refuse(&class.span),
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(
        &mut self,
        operation: &ClassSetBinaryOp,
    ) -> Result<(), PatternError> {
        self.refuse(&operation.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchored_pattern_holds_the_whole_text() {
        for pattern in [
            "^$",
            "^a$",
            "^(a|b)$",
            "^(?:a|b)+$",
            r"^[a-z\d\-.]{1,9}\p{Lu}*$",
            r"^\bé\/?$",
            "^(?<year>[0-9]{4})$",
        ] {
            assert_eq!(check(pattern, true), Ok(()), "{pattern}");
        }
        for pattern in [
            "", "a", "^a", "a$", "^a|b$", "(^a$)", r"^a\$", r"\^a$", "^", "$", "^*$|", "[^a$]",
        ] {
            assert_eq!(
                check(pattern, true),
                Err(PatternError::Anchors),
                "{pattern}"
            );
            assert_eq!(check(pattern, false), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn what_is_slow_or_strange_is_named() {
        let slow = |pattern: &str, part: &str| {
            assert_eq!(
                check(pattern, false),
                Err(PatternError::Backtracking(part.to_owned())),
                "{pattern}"
            );
        };
        slow(r"^(a)\1$", r"\1");
        slow("^(?=a)b$", "(?=");
        slow("^(?!a)b$", "(?!");
        slow("^a(?<=b)$", "(?<=");
        slow("^a(?<!b)$", "(?<!");
        let strange = |pattern: &str, part: &str| {
            assert_eq!(
                check(pattern, false),
                Err(PatternError::Dialect(part.to_owned())),
                "{pattern}"
            );
        };
        strange("^(?m)a$", "(?m)");
        strange("^(?i:a)$", "i");
        strange(r"^a\z$", r"\z");
        strange(r"^\Aa$", r"\A");
        strange("^[[:alpha:]]$", "[:alpha:]");
        strange("^[a[b]]$", "[b]");
        strange("^[a&&b]$", "a&&b");
        strange("^(?P<a>b)$", "(?P<a>b)");
        assert_eq!(
            check("^[a$", true),
            Err(PatternError::Syntax("unclosed character class".to_owned()))
        );
        assert_eq!(
            check("^(a$", true),
            Err(PatternError::Syntax("unclosed group".to_owned()))
        );
    }
}
