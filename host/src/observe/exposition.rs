//! The text form of metrics that Prometheus reads (exposition format 0.0.4).
//!
//! Knows names, labels and numbers; which there are is the gatherer's to say (`operator::metrics`).

use std::fmt::{Display, Write as _};

use super::instrument::Histogram;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What kind of numbers a family has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

/// A text in the making.
#[derive(Default)]
pub(crate) struct Exposition {
    text: String,
    family: &'static str,
}

/// Names and values, in the order that they are printed.
pub(crate) type Labels<'l> = &'l [(&'l str, &'l str)];

impl Exposition {
    /// Begins a family; the samples that follow are its own. `help` is one line without a backslash.
    pub(crate) fn family(&mut self, name: &'static str, kind: FamilyKind, help: &str) {
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        self.family = name;
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    pub(crate) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.write("", labels, None, value);
    }

    pub(crate) fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let read = histogram.read();
        for (bound, count) in read.buckets {
            self.write("_bucket", labels, Some(&bound.as_secs_f64()), count);
        }
        self.write("_bucket", labels, Some(&"+Inf"), read.count);
        self.write("_sum", labels, None, read.sum.as_secs_f64());
        self.write("_count", labels, None, read.count);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn write(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        bound: Option<&dyn Display>,
        value: impl Display,
    ) {
        let mut printed: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        printed.extend(bound.map(|bound| format!("le=\"{bound}\"")));
        let family = self.family;
        if printed.is_empty() {
            self.line(format_args!("{family}{suffix} {value}"));
        } else {
            self.line(format_args!(
                "{family}{suffix}{{{}}} {value}",
                printed.join(",")
            ));
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("writing to a String does not fail");
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_line_or_its_quotes() {
        let mut exposition = Exposition::default();
        exposition.family("family", FamilyKind::Gauge, "Help");
        exposition.sample(&[("label", "a\"b\\c\nd")], 1);
        assert_eq!(
            exposition.into_text(),
            "# HELP family Help\n# TYPE family gauge\nfamily{label=\"a\\\"b\\\\c\\nd\"} 1\n"
        );
    }
}
