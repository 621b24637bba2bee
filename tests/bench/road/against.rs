//! This build against another one: `SWITCHBAY_BENCH_AGAINST=PROGRAM cargo bench`, where the program is the other's bench.
//!
//! Both serve in one run and are loaded in turns, so that what the machine does beside weighs on both alike. A ratio is made of
//! each pair of turns; their median is told, and between which two figures the middle half of them lies. Words behind
//! `cargo bench --bench road --` choose the rows whose names contain one of them.

use std::path::Path;

use crate::load::{self, Key, Target};
use crate::server::Server;
use crate::{databases, turn};

/// Pairs of turns for each row.
const PAIRS: usize = 15;

/// A build under load, once with warm and once with fresh instances.
struct Build {
    warm: Server,
    fresh: Server,
}

impl Build {
    fn start(program: &Path) -> Self {
        Self {
            warm: Server::start("warm", program),
            fresh: Server::start("fresh", program),
        }
    }

    fn of(&self, row: &Row) -> &Server {
        if row.is_fresh {
            &self.fresh
        } else {
            &self.warm
        }
    }
}

struct Row {
    name: &'static str,
    target: Target,
    is_fresh: bool,
}

fn rows() -> Vec<Row> {
    let qr = |path| Target::post(path, crate::QR);
    let nothing = || Target::get("/api/v1/native/nothing");
    let paid = || Target::get("/api/v1/native/paid").by(Key::SelfService);
    let banks = || Target::get("/api/v1/tools/bank-qr/banks");
    let warm = |name, target| Row {
        name,
        target,
        is_fresh: false,
    };
    let fresh = |name, target| Row {
        name,
        target,
        is_fresh: true,
    };
    vec![
        warm("the road without a plugin", nothing()),
        warm("with a minute and a month", nothing().by(Key::Limited)),
        warm("with seconds and places", nothing().by(Key::SelfService)),
        warm("with a credit, written", paid()),
        warm(
            "bank directory: native",
            Target::get("/api/v1/native/tools/bank-qr/banks"),
        ),
        warm("bank directory: warm component", banks()),
        fresh("bank directory: fresh component", banks()),
        warm("QR generation: native", qr("/api/v1/native/tools/bank-qr")),
        warm("QR generation: warm component", qr("/api/v1/tools/bank-qr")),
        fresh(
            "QR generation: fresh component",
            qr("/api/v1/tools/bank-qr"),
        ),
        warm(
            "IP lookup: zone by country",
            Target::post(databases::BY_COUNTRY, ""),
        ),
        warm(
            "IP lookup: zone by boundaries",
            Target::post(databases::BY_BOUNDARIES, ""),
        ),
    ]
}

/// Prints the processor time a request of this build over the other's.
pub(crate) fn compare(other: &Path, words: &[String]) {
    let own = std::env::current_exe().expect("this program has a path");
    let (own, other) = (Build::start(&own), Build::start(other));
    println!(
        "processor time a request, over the other build's; medians of {PAIRS} pairs of turns of {:?}\n",
        turn()
    );
    let is_chosen =
        |row: &Row| words.is_empty() || words.iter().any(|word| row.name.contains(word));
    for connections in [1, 32] {
        println!("{connections} connections");
        for row in rows().into_iter().filter(is_chosen) {
            let cpu =
                |build: &Build| load::run(build.of(&row), &row.target, connections, turn()).cpu_us;
            let mut ratios: Vec<f64> = (0..PAIRS)
                .map(|pair| {
                    // Neither is always the first.
                    if pair % 2 == 0 {
                        let before = cpu(&other);
                        cpu(&own) / before
                    } else {
                        let now = cpu(&own);
                        now / cpu(&other)
                    }
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            println!(
                "{:34}{:>12.3}   ({:.3} to {:.3})",
                row.name,
                ratios[PAIRS / 2],
                ratios[PAIRS / 4],
                ratios[PAIRS - 1 - PAIRS / 4]
            );
        }
        println!();
    }
}
