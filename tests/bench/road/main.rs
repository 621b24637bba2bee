//! What the road costs, and what a component costs on it: `cargo bench`.
//!
//! The bench starts itself as a server, once with warm and once with fresh instances of its plugins, and beside bank-qr's the
//! same work as a native function on the same road. It loads them over loopback in turns, within one run, and prints requests a
//! second and the server's processor time a request, as ratios: absolute figures are the machine's.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

mod against;
mod databases;
mod load;
mod server;

use std::path::Path;
use std::time::Duration;

use load::{Key, Taken, Target};
use server::Server;

/// How long each turn of the load lasts; `SWITCHBAY_BENCH_MS` asks for another.
fn turn() -> Duration {
    let asked = std::env::var("SWITCHBAY_BENCH_MS")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_millis(asked.unwrap_or(2000))
}

const ROUNDS: usize = 5;
const QR: &str =
    r#"{"bank":"VCB","accountNumber":"0011001234567","amount":150000,"memo":"Tiền cà phê"}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--server") {
        return server::run(&arguments[at + 1..]);
    }
    if let Some(other) = std::env::var_os("SWITCHBAY_BENCH_AGAINST") {
        let words = arguments.into_iter().skip(1);
        let words: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
        return against::compare(Path::new(&other), &words);
    }
    let own = std::env::current_exe().expect("this program has a path");
    let (warm, fresh) = (Server::start("warm", &own), Server::start("fresh", &own));
    println!(
        "requests a second, and the server's processor time a request; medians of {ROUNDS} turns of {:?}\n",
        turn()
    );
    for connections in [1, 32] {
        compare(&warm, &fresh, connections);
        lookups(&warm, connections);
        admission(&warm, connections);
    }
}

/// What a caller's limits cost on the road without a plugin.
fn admission(server: &Server, connections: usize) {
    let nothing = || Target::get("/api/v1/native/nothing");
    let paid = Target::get("/api/v1/native/paid").by(Key::SelfService);
    let targets = [
        nothing(),
        nothing().by(Key::Limited),
        nothing().by(Key::SelfService),
        paid,
    ];
    let taken = median(&targets.map(|target| (server, target)), connections);
    let names = [
        "without limits",
        "minute and month",
        "seconds and places",
        "the same and a credit, written",
    ];
    println!("{:34}{:>12}{:>12}", "", "requests/s", "more CPU µs");
    for (name, one) in names.into_iter().zip(&taken) {
        println!(
            "{name:34}{:>12.0}{:>12.1}",
            one.per_second,
            one.cpu_us - taken[0].cpu_us
        );
    }
    println!();
}

fn compare(warm: &Server, fresh: &Server, connections: usize) {
    println!("{connections} connections");
    println!("{:34}{:>12}{:>12}", "", "requests/s", "CPU µs");
    let nothing = median(
        &[(warm, Target::get("/api/v1/native/nothing"))],
        connections,
    );
    print("the road without a plugin", nothing[0], None);
    let work = [
        (
            "bank directory",
            Target::get("/api/v1/tools/bank-qr/banks"),
            Target::get("/api/v1/native/tools/bank-qr/banks"),
        ),
        (
            "QR generation",
            Target::post("/api/v1/tools/bank-qr", QR),
            Target::post("/api/v1/native/tools/bank-qr", QR),
        ),
    ];
    for (name, component, native) in work {
        let taken = median(
            &[
                (warm, native),
                (warm, component.clone()),
                (fresh, component),
            ],
            connections,
        );
        let native = taken[0];
        print(&format!("{name}: native"), native, None);
        print(&format!("{name}: warm component"), taken[1], Some(native));
        print(&format!("{name}: fresh component"), taken[2], Some(native));
        println!(
            "{:34}{:>24.1}",
            "  fresh over warm",
            taken[2].cpu_us - taken[1].cpu_us
        );
    }
    println!();
}

/// What an IP lookup costs beside the bank directory.
fn lookups(server: &Server, connections: usize) {
    let lookups =
        [databases::BY_COUNTRY, databases::BY_BOUNDARIES].map(|path| Target::post(path, ""));
    let [country, boundaries] = lookups.map(|target| (server, target));
    let banks = (server, Target::get("/api/v1/tools/bank-qr/banks"));
    let taken = median(&[banks, country, boundaries], connections);
    let names = [
        "bank directory",
        "IP lookup: zone by country",
        "IP lookup: zone by boundaries",
    ];
    println!("{:34}{:>12}{:>12}", "", "requests/s", "CPU µs");
    for (name, one) in names.into_iter().zip(&taken) {
        let (time, cpu) = (
            taken[0].per_second / one.per_second,
            one.cpu_us / taken[0].cpu_us,
        );
        println!(
            "{name:34}{:>12.0}{:>12.1}   {time:.2} of its time, {cpu:.2} of its CPU",
            one.per_second, one.cpu_us
        );
    }
    println!();
}

fn print(name: &str, taken: Taken, native: Option<Taken>) {
    let ratio = native.map_or(String::new(), |native| {
        format!("   {:.2} of native", taken.per_second / native.per_second)
    });
    println!(
        "{name:34}{:>12.0}{:>12.1}{ratio}",
        taken.per_second, taken.cpu_us
    );
}

/// Loads the targets in turns, and gives the median of each.
fn median(targets: &[(&Server, Target)], connections: usize) -> Vec<Taken> {
    let mut taken: Vec<Vec<Taken>> = vec![Vec::new(); targets.len()];
    for (server, target) in targets {
        load::run(server, target, connections, turn() / 4);
    }
    for _ in 0..ROUNDS {
        for (index, (server, target)) in targets.iter().enumerate() {
            taken[index].push(load::run(server, target, connections, turn()));
        }
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    taken
        .into_iter()
        .map(|all| Taken {
            per_second: middle(all.iter().map(|one| one.per_second).collect()),
            cpu_us: middle(all.iter().map(|one| one.cpu_us).collect()),
        })
        .collect()
}
