//! Reads the text form of metrics (OpenMetrics 1.0) and holds it to its rules: each family has one HELP and one TYPE before its
//! samples and stands in one piece, no series stands twice, a histogram's buckets add up, and the text says where it ends.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a series, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// All samples, by name and labels.
pub(crate) struct Metrics {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.strip_suffix("# EOF\n").expect("the end of the text");
        let mut metrics = Self {
            kinds: BTreeMap::new(),
            samples: BTreeMap::new(),
        };
        let mut family = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a help text");
                assert!(
                    is_name(name) && name.starts_with("switchbay_") && !help.is_empty(),
                    "{line}"
                );
                let kind = lines
                    .next()
                    .and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")))
                    .expect("a TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
                assert!(
                    !name.ends_with("_total"),
                    "the samples alone have the suffix"
                );
                assert!(
                    metrics
                        .kinds
                        .insert(name.to_owned(), kind.to_owned())
                        .is_none(),
                    "{name} stands twice"
                );
                name.clone_into(&mut family);
                continue;
            }
            let (name, labels, value) = sample(line);
            let suffix = name
                .strip_prefix(&family)
                .unwrap_or_else(|| panic!("outside its family: {line}"));
            let suffixes: &[&str] = match &*metrics.kinds[&family] {
                "histogram" => &["_bucket", "_sum", "_count"],
                "counter" => &["_total"],
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(
                metrics.samples.insert((name, labels), value).is_none(),
                "stands twice: {line}"
            );
        }
        metrics.histograms_add_up();
        metrics
    }

    /// The value of the one series with exactly these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: Labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let found = self.samples.get(&(name.to_owned(), labels.clone()));
        *found.unwrap_or_else(|| panic!("no {name} {labels:?} in {:?}", self.samples.keys()))
    }

    /// What is not zero of a name, by the value of one label, where the series has the given labels.
    pub(crate) fn counts(
        &self,
        name: &str,
        given: &[(&str, &str)],
        by: &str,
    ) -> BTreeMap<String, f64> {
        let mut counts = BTreeMap::new();
        for (labels, value) in self.series(name) {
            if *value != 0.0
                && given
                    .iter()
                    .all(|(name, value)| labels.get(*name).is_some_and(|v| v == value))
            {
                *counts.entry(labels[by].clone()).or_insert(0.0) += value;
            }
        }
        counts
    }

    /// All values of a label that a name's series have.
    pub(crate) fn values_of(&self, name: &str, label: &str) -> BTreeSet<String> {
        self.series(name)
            .map(|(labels, _)| labels[label].clone())
            .collect()
    }

    fn series<'m>(&'m self, name: &'m str) -> impl Iterator<Item = (&'m Labels, &'m f64)> {
        self.samples
            .iter()
            .filter(move |((found, _), _)| found == name)
            .map(|((_, labels), value)| (labels, value))
    }

    fn histograms_add_up(&self) {
        for (name, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for (labels, count) in self.series(&format!("{name}_bucket")) {
                let mut labels = labels.clone();
                let bound = labels.remove("le").expect("a bucket has a bound");
                let bound = if bound == "+Inf" {
                    f64::INFINITY
                } else {
                    bound.parse().expect("a number")
                };
                buckets.entry(labels).or_default().push((bound, *count));
            }
            assert!(!buckets.is_empty(), "{name} has no buckets");
            for (labels, mut buckets) in buckets {
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(
                    buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
                    "{name} {labels:?}: {buckets:?}"
                );
                let of = |suffix: &str| self.samples[&(format!("{name}{suffix}"), labels.clone())];
                assert_eq!(
                    buckets.last(),
                    Some(&(f64::INFINITY, of("_count"))),
                    "{name} {labels:?}"
                );
                assert_eq!(of("_sum") > 0.0, of("_count") > 0.0, "{name} {labels:?}");
            }
        }
    }
}

/// Name, labels and value of one line.
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line
        .rsplit_once(' ')
        .unwrap_or_else(|| panic!("no sample: {line}"));
    let (name, labels) = match series.strip_suffix('}') {
        Some(series) => series.split_once('{').expect("an opening brace"),
        None => (series, ""),
    };
    assert!(is_name(name), "{line}");
    let value: f64 = value
        .parse()
        .unwrap_or_else(|_| panic!("no number: {line}"));
    assert!(value >= 0.0, "{line}");
    let mut read = Labels::new();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (name, value) = label
            .split_once('=')
            .unwrap_or_else(|| panic!("no label: {line}"));
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .expect("a quoted value");
        // Nothing that is a label's value here needs an escape.
        assert!(
            is_name(name) && !value.is_empty() && !value.contains(['"', '\\']),
            "{line}"
        );
        assert!(
            read.insert(name.to_owned(), value.to_owned()).is_none(),
            "{line}"
        );
    }
    (name.to_owned(), read, value)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
