//! The text form of metrics that Prometheus reads (OpenMetrics 1.0).
//!
//! Knows names, labels and numbers; which there are is the gatherer's to say.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::instrument::Histogram;

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Ends the name of a counter's samples; the encoder writes it.
const COUNTED: &str = "_total";

/// What kind of numbers a family has.
#[derive(Clone, Copy, Debug)]
enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

/// Metrics as they were at one moment.
#[derive(Debug, Default)]
pub(crate) struct Exposition(Vec<MetricFamily>);

/// The series of one name.
#[derive(Debug)]
pub(crate) struct MetricFamily {
    name: &'static str,
    kind: FamilyKind,
    help: &'static str,
    samples: Vec<(SampleLabels, SampleValue)>,
}

/// Names and values, in the order that they are printed.
pub(crate) type MetricLabels<'l> = &'l [(&'l str, &'l str)];

type SampleLabels = Vec<(String, String)>;

/// The value of one series.
#[derive(Clone, Debug)]
pub(crate) enum SampleValue {
    Whole(u64),
    Real(f64),
    /// Upper bounds in seconds, each with what is above the one before; the count and the sum.
    Buckets(Vec<(f64, u64)>, u64, f64),
}

impl From<u64> for SampleValue {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<usize> for SampleValue {
    fn from(value: usize) -> Self {
        Self::Whole(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

impl From<f64> for SampleValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl Exposition {
    /// Begins a family of what only grows; its name ends with `_total`.
    pub(crate) fn counter(&mut self, name: &'static str) -> &mut MetricFamily {
        self.family(name, FamilyKind::Counter)
    }

    /// Begins a family of what comes and goes.
    pub(crate) fn gauge(&mut self, name: &'static str) -> &mut MetricFamily {
        self.family(name, FamilyKind::Gauge)
    }

    /// Begins a family of durations.
    pub(crate) fn durations(&mut self, name: &'static str) -> &mut MetricFamily {
        self.family(name, FamilyKind::Histogram)
    }

    fn family(&mut self, name: &'static str, kind: FamilyKind) -> &mut MetricFamily {
        self.0.push_mut(MetricFamily {
            name,
            kind,
            help: "",
            samples: Vec::new(),
        })
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut printed = String::new();
        text::encode(&mut printed, &registry).expect("writing to a String does not fail");
        printed
    }
}

impl MetricFamily {
    /// Says what the numbers are, in one line.
    pub(crate) fn help(&mut self, help: &'static str) -> &mut Self {
        self.help = help;
        self
    }

    /// Adds a series.
    pub(crate) fn sample(&mut self, labels: MetricLabels<'_>, value: impl Into<SampleValue>) {
        let owned = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.samples.push((owned.collect(), value.into()));
    }

    /// Adds the series of a histogram.
    pub(crate) fn histogram(&mut self, labels: MetricLabels<'_>, histogram: &Histogram) {
        let read = histogram.read();
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(read.buckets.len() + 1);
        for (bound, count) in read.buckets {
            buckets.push((bound.as_secs_f64(), count - below));
            below = count;
        }
        buckets.push((f64::INFINITY, read.count - below));
        let value = SampleValue::Buckets(buckets, read.count, read.sum.as_secs_f64());
        self.sample(labels, value);
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let (name, kind) = match family.kind {
                FamilyKind::Counter => {
                    let name = family.name.strip_suffix(COUNTED);
                    (name.unwrap_or(family.name), MetricType::Counter)
                }
                FamilyKind::Gauge => (family.name, MetricType::Gauge),
                FamilyKind::Histogram => (family.name, MetricType::Histogram),
            };
            let mut metric = encoder.encode_descriptor(name, family.help, None, kind)?;
            for (labels, value) in &family.samples {
                if labels.is_empty() {
                    encode(&mut metric, family.kind, value)?;
                } else {
                    encode(&mut metric.encode_family(labels)?, family.kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(series: &mut MetricEncoder<'_>, kind: FamilyKind, value: &SampleValue) -> fmt::Result {
    match (value, kind) {
        (SampleValue::Whole(value), FamilyKind::Counter) => {
            series.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (SampleValue::Real(value), FamilyKind::Counter) => {
            series.encode_counter::<NoLabelSet, _, f64>(value, None)
        }
        (SampleValue::Whole(value), FamilyKind::Gauge | FamilyKind::Histogram) => {
            series.encode_gauge(value)
        }
        (SampleValue::Real(value), FamilyKind::Gauge | FamilyKind::Histogram) => {
            series.encode_gauge(value)
        }
        (SampleValue::Buckets(buckets, count, sum), _) => {
            series.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_line_or_its_quotes() {
        let mut exposition = Exposition::default();
        let family = exposition.gauge("family").help("Help");
        family.sample(&[("label", "a\"b\\c\nd")], 1_u64);
        assert_eq!(
            exposition.into_text(),
            "# HELP family Help\n# TYPE family gauge\nfamily{label=\"a\\\"b\\\\c\\nd\"} 1\n# EOF\n"
        );
    }
}
