//! Failures from an error type of the plugin: [`failures!`](crate::failures!).

use crate::{ErrorCode, Failure};

/// An error type that a call may fail with, and the codes that it becomes. [`failures!`](crate::failures!) implements it.
pub trait OperationError: Into<Failure> {
    /// Its codes, in the order in which they are declared.
    const CODES: &'static [ErrorCode];
}

/// Defines an error enum whose variants are failures of an operation.
///
/// Variants stand below the [`ErrorCode`] that they become, each with its message. A message may name the variant's
/// fields in braces, as in `format!`, and methods of [`Failure`] may follow it. The enum converts into [`Failure`],
/// so `?` turns it into one in a handler, and [`Operation::errors_of`] declares its codes.
///
/// ```
/// use switchbay_sdk::{ErrorCode, Failure, failures};
///
/// const QUERY_MAX: usize = 1000;
///
/// failures! {
///     /// Why there are no results.
///     #[derive(Debug)]
///     pub enum Trouble {
///         ErrorCode::validation_error("`query` is empty or too long.") => {
///             Empty => "`query` must not be empty".field("query"),
///             /// With its length in characters.
///             TooLong(found: usize) => "`query` must have at most {QUERY_MAX} characters, not {found}"
///                 .field("query").detail("max", QUERY_MAX),
///         }
///         ErrorCode::new("SEARCH_THROTTLED", 429, "The search provider's rate limit is reached.") => {
///             Throttled { wait_ms: u32 } => "try again later".retry_after_ms(wait_ms),
///         }
///     }
/// }
///
/// fn measure(query: &str) -> Result<usize, Failure> {
///     match query.chars().count() {
///         0 => Err(Trouble::Empty)?,
///         found if found > QUERY_MAX => Err(Trouble::TooLong(found))?,
///         found => Ok(found),
///     }
/// }
/// # assert!(measure("harbour").is_ok() && measure("").is_err());
/// # let _ = Trouble::Throttled { wait_ms: 10 };
/// ```
///
/// [`Operation::errors_of`]: crate::Operation::errors_of
#[macro_export]
macro_rules! failures {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident {
            $(
                $code:expr => {
                    $(
                        $(#[$inner:meta])*
                        $variant:ident
                        $(($($field:ident: $kind:ty),+ $(,)?))?
                        $({ $($named:ident: $named_kind:ty),+ $(,)? })?
                        => $message:literal $(.$method:ident($($argument:expr),* $(,)?))*
                    ),+ $(,)?
                }
            )+
        }
    ) => {
        $(#[$outer])*
        $vis enum $name {
            $($(
                $(#[$inner])*
                $variant $(($($kind),+))? $({ $($named: $named_kind),+ })?,
            )+)+
        }

        impl $crate::OperationError for $name {
            const CODES: &'static [$crate::ErrorCode] = &[$($code),+];
        }

        impl ::core::convert::From<$name> for $crate::Failure {
            fn from(error: $name) -> Self {
                match error {
                    $($(
                        $name::$variant $(($($field),+))? $({ $($named),+ })? => {
                            $crate::Failure::new(&$code, ::core::format_args!($message).to_string())
                                $(.$method($($argument),*))*
                        }
                    )+)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: ErrorCode = ErrorCode::upstream_timeout("It is late.");

    failures! {
        /// Why it failed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        enum Trouble {
            ErrorCode::validation_error("`name` is wrong.") => {
                /// Nothing was given.
                Empty => "`name` must not be empty".field("name").detail("min", 1),
                Odd(rule: String, at: usize) => "`name` {rule} at {at}",
            }
            LATE => {
                Late { wait_ms: u32 } => "too late".retry_after_ms(wait_ms),
            }
        }
    }

    fn wire(trouble: Trouble) -> (String, String, Option<u32>, Option<String>) {
        let wire = Failure::from(trouble).into_wire();
        (wire.code, wire.message, wire.retry_after_ms, wire.details)
    }

    #[test]
    fn a_variant_becomes_its_code_and_its_message() {
        let details = Some(r#"{"field":"name","min":1}"#.to_owned());
        let expected = (
            "VALIDATION_ERROR".to_owned(),
            "`name` must not be empty".to_owned(),
            None,
            details,
        );
        assert_eq!(wire(Trouble::Empty), expected);
        let odd = Trouble::Odd("has {braces}".to_owned(), 3);
        assert_eq!(wire(odd).1, "`name` has {braces} at 3");
        let late = wire(Trouble::Late { wait_ms: 1500 });
        assert_eq!((late.0.as_str(), late.2), ("UPSTREAM_TIMEOUT", Some(1500)));
    }

    #[test]
    fn codes_are_declared_in_their_order() {
        let codes: Vec<&str> = Trouble::CODES.iter().map(ErrorCode::code).collect();
        assert_eq!(codes, ["VALIDATION_ERROR", "UPSTREAM_TIMEOUT"]);
    }
}
