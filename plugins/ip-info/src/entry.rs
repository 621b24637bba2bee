//! An entry of a database, asked by paths: what two schemas call by different names is asked for by both.
//!
//! An empty text is nothing, and a number may be written as text. Knows no field.

use serde_json::Value;

/// An entry; one that is not there answers nothing.
#[derive(Debug, Default)]
pub(crate) struct Entry(Value);

/// Steps into maps, and a number into a list.
type Path<'p> = &'p [&'p str];

impl Entry {
    /// Reads the JSON that the host gives.
    pub(crate) fn read(json: Option<&str>) -> Self {
        Self(
            json.and_then(|json| serde_json::from_str(json).ok())
                .unwrap_or_default(),
        )
    }

    /// The first text that is not empty.
    pub(crate) fn text(&self, paths: &[Path<'_>]) -> Option<String> {
        let found =
            |path: &Path<'_>| Some(self.at(path)?.as_str()?.trim()).filter(|text| !text.is_empty());
        paths.iter().find_map(found).map(str::to_owned)
    }

    /// The first number.
    pub(crate) fn number(&self, paths: &[Path<'_>]) -> Option<f64> {
        let read = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        paths
            .iter()
            .find_map(|path| read(self.at(path)?).filter(|number: &f64| number.is_finite()))
    }

    /// The first whole number that is not negative.
    pub(crate) fn count(&self, paths: &[Path<'_>]) -> Option<u32> {
        let read = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        paths.iter().find_map(|path| read(self.at(path)?))
    }

    /// Whether any of these is true.
    pub(crate) fn is_any(&self, paths: &[Path<'_>]) -> bool {
        paths
            .iter()
            .any(|path| self.at(path).is_some_and(|value| *value == true))
    }

    fn at(&self, path: Path<'_>) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, step| match value {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
    }
}
