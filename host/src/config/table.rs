//! How a table of the configuration file is declared: one row for each setting, with its meaning, its type, its default and
//! what it must be. Reading, checking, telling and documenting come of the row.
//!
//! Must not know which settings there are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// A table of settings. Behind the default of each stands what its numbers must be `in`, or the function that judges it `by` its
/// name and value. A row's doc comment is what people read of the setting.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $table:ident $name:literal {
            $(
                $(#[$key_attribute:meta])*
                $key:ident: $kind:ty = $default:expr $(, in $bounds:expr)? $(, by $judge:path)?;
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $table {
            $(
                $(#[$key_attribute])*
                pub(crate) $key: $kind,
            )*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $table {
            /// Refuses the first setting that may not be.
            pub(super) fn check(&self) -> Result<(), $crate::config::ConfigError> {
                $(
                    $($crate::config::table::within(
                        concat!($name, ".", stringify!($key)), &self.$key, $bounds,
                    )?;)?
                    $($judge(concat!($name, ".", stringify!($key)), &self.$key)?;)?
                )*
                Ok(())
            }
        }
    };
}

/// Whole milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Milliseconds(pub(super) u64);

impl Milliseconds {
    pub(crate) fn time(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// Whole seconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Seconds(pub(super) u64);

impl Seconds {
    pub(crate) fn time(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// What a time in milliseconds may be.
pub(super) const TIME: RangeInclusive<u64> = 10..=3_600_000;

/// A setting whose numbers have bounds.
pub(super) trait BoundedSetting {
    fn numbers(&self) -> Vec<u64>;
}

impl BoundedSetting for u32 {
    fn numbers(&self) -> Vec<u64> {
        vec![u64::from(*self)]
    }
}

impl BoundedSetting for u64 {
    fn numbers(&self) -> Vec<u64> {
        vec![*self]
    }
}

impl BoundedSetting for usize {
    fn numbers(&self) -> Vec<u64> {
        vec![*self as u64]
    }
}

impl BoundedSetting for Milliseconds {
    fn numbers(&self) -> Vec<u64> {
        vec![self.0]
    }
}

impl BoundedSetting for Seconds {
    fn numbers(&self) -> Vec<u64> {
        vec![self.0]
    }
}

impl<T: BoundedSetting> BoundedSetting for Option<T> {
    fn numbers(&self) -> Vec<u64> {
        self.iter().flat_map(T::numbers).collect()
    }
}

impl<T: BoundedSetting> BoundedSetting for BTreeMap<String, T> {
    fn numbers(&self) -> Vec<u64> {
        self.values().flat_map(T::numbers).collect()
    }
}

/// Refuses a number out of its bounds.
pub(super) fn within(
    name: &'static str,
    setting: &impl BoundedSetting,
    bounds: RangeInclusive<u64>,
) -> Result<(), ConfigError> {
    match setting
        .numbers()
        .iter()
        .find(|number| !bounds.contains(number))
    {
        Some(number) => {
            let rule = format!("from {} to {}", bounds.start(), bounds.end());
            Err(ConfigError::value(name, number.to_string(), rule))
        }
        None => Ok(()),
    }
}
