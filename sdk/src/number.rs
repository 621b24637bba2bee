//! Defaults of numeric input properties.

/// The number itself, for serde and schemars, which take a default by the path of a function.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Search {
///     /// The maximum number of results.
///     #[serde(default = "switchbay_sdk::number::<5>")]
///     #[schemars(range(min = 1, max = 10))]
///     limit: u32,
/// }
/// # let read: Search = serde_json::from_str("{}").expect("the limit has a default");
/// # assert_eq!(read.limit, 5);
/// # assert_eq!(schemars::schema_for!(Search).to_value()["properties"]["limit"]["default"], 5);
/// ```
pub fn number<const N: u32>() -> u32 {
    N
}
