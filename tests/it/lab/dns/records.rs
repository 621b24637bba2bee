//! What other clients make of a server's answers: kdig, dig, and a question of our own for waiting and for flags.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::proto::serialize::binary::{BinEncodable as _, BinEncoder, NameEncoding};
use serde_json::Value;

use crate::support;

/// For one answer; generous, because it is no measurement.
const ANSWER: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The name of the response code: `NOERROR`, `NXDOMAIN`.
    pub(crate) status: String,
    /// Whether the resolver validated it.
    pub(crate) ad: bool,
    pub(crate) answer: Vec<Record>,
    pub(crate) authority: Vec<Record>,
}

/// A record of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    /// With its last dot, in ASCII, in the case of the message.
    pub(crate) name: String,
    /// The name of its type.
    pub(crate) record_type: String,
    pub(crate) ttl: u32,
    /// In presentation form, as the program writes it.
    pub(crate) data: String,
    /// The same bytes as in the message, names uncompressed, in upper-case hexadecimal; dig does not tell it.
    pub(crate) hex: Option<String>,
}

/// What kdig makes of a server's answer, over TCP.
pub(super) fn kdig(server: SocketAddr, name: &str, record_type: &str) -> Told {
    let written = run(
        "kdig",
        server,
        &[
            "+tcp",
            "+json",
            "+noidn",
            "+adflag",
            "-q",
            name,
            "-t",
            record_type,
        ],
    );
    let told: Value =
        serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    let number = |value: &Value| {
        value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .expect("a number")
    };
    let record = |row: &Value| {
        let record_type = row["TYPEname"].as_str().expect("a type").to_owned();
        let data = row[format!("rdata{record_type}")]
            .as_str()
            .expect("data")
            .to_owned();
        let (name, hex) = (
            row["NAME"].as_str().expect("a name").to_owned(),
            row["RDATAHEX"].as_str(),
        );
        Record {
            name,
            record_type,
            ttl: number(&row["TTL"]),
            data,
            hex: hex.map(str::to_owned),
        }
    };
    let section = |name: &str| {
        told[name]
            .as_array()
            .into_iter()
            .flatten()
            .map(record)
            .collect()
    };
    let code = u16::try_from(number(&told["RCODE"])).expect("a code");
    Told {
        status: status(ResponseCode::from(0, u8::try_from(code).expect("a code"))),
        ad: told["AD"] == 1,
        answer: section("answerRRs"),
        authority: section("authorityRRs"),
    }
}

/// What dig makes of a server's answer, over TCP.
pub(super) fn dig(server: SocketAddr, name: &str, record_type: &str) -> Told {
    let written = run(
        "dig",
        server,
        &[
            "+tcp",
            "+noidnout",
            "+nosplit",
            "+adflag",
            "-q",
            name,
            "-t",
            record_type,
        ],
    );
    let head = |start: &str| {
        written
            .lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_default()
    };
    let status = head(";; ->>HEADER<<- ")
        .split("status: ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let flags = head(";; flags: ").split(';').next().unwrap_or_default();
    let section = |title: &str| {
        let rows = written
            .lines()
            .skip_while(|line| *line != format!(";; {title} SECTION:"))
            .skip(1);
        rows.take_while(|line| !line.is_empty()).map(row).collect()
    };
    Told {
        status: status
            .unwrap_or_else(|| panic!("no status: {written}"))
            .to_owned(),
        ad: flags.split(' ').any(|flag| flag == "ad"),
        answer: section("ANSWER"),
        authority: section("AUTHORITY"),
    }
}

/// A record as dig writes it: five columns, of which the last has spaces of its own.
fn row(line: &str) -> Record {
    let (mut columns, mut rest) = (Vec::new(), line);
    while columns.len() < 4 {
        let (column, more) = rest
            .split_once(char::is_whitespace)
            .unwrap_or_else(|| panic!("no record: {line}"));
        columns.push(column);
        rest = more.trim_start();
    }
    Record {
        name: columns[0].to_owned(),
        record_type: columns[3].to_owned(),
        ttl: columns[1].parse().expect("a time"),
        data: rest.to_owned(),
        hex: None,
    }
}

fn run(program: &str, server: SocketAddr, arguments: &[&str]) -> String {
    let (at, port) = (format!("@{}", server.ip()), server.port().to_string());
    let done = Command::new(program)
        .env("PATH", support::path())
        .args([&at, "-p", &port])
        .args(arguments)
        .output()
        .expect("the program runs");
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A server's answer to a question of ours, over TCP, where there is one.
pub(super) fn ask(server: SocketAddr, name: &str, record_type: u16) -> Option<Told> {
    let mut message = Message::new(1, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.metadata.authentic_data = true;
    let name = Name::from_ascii(format!("{name}.")).expect("a name");
    message.add_query(Query::query(name, RecordType::from(record_type)));
    let message = message.to_vec().expect("a message");
    Told::read(&exchange(server, &message).ok()?)
}

/// One message and its answer, over TCP.
pub(super) fn exchange(server: SocketAddr, message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let length = u16::try_from(message.len()).expect("a short message");
    stream.write_all(&[&length.to_be_bytes(), message].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

impl Told {
    /// What a message says. The data of records is in bytes alone.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let message = Message::from_vec(message).ok()?;
        let records = |records: &[hickory_resolver::proto::rr::Record]| {
            let read = records.iter().map(|record| Record {
                name: record.name.to_ascii(),
                record_type: record.record_type().to_string(),
                ttl: record.ttl,
                data: String::new(),
                hex: Some(rdata(&record.data)),
            });
            read.collect()
        };
        Some(Self {
            status: status(message.metadata.response_code),
            ad: message.metadata.authentic_data,
            answer: records(&message.answers),
            authority: records(&message.authorities),
        })
    }
}

/// The bytes of a record's data, names uncompressed, in upper-case hexadecimal.
fn rdata(data: &RData) -> String {
    let mut bytes = Vec::new();
    let mut encoder = BinEncoder::new(&mut bytes);
    data.emit(&mut encoder.with_name_encoding(NameEncoding::Uncompressed))
        .expect("it was decoded");
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// As dig writes it.
fn status(code: ResponseCode) -> String {
    match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        other => return format!("RCODE{}", u16::from(other)),
    }
    .to_owned()
}
