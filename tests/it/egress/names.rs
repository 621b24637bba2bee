//! A name server on loopback, over UDP: which addresses a name has is said by the test.

use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Begins to serve, for as long as the process lives. What has no row does not exist.
pub(crate) fn serve(rows: &'static [(&'static str, &'static [&'static str])]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if let Some(answer) = answer(&buffer[..length], rows) {
                socket.send_to(&answer, from).expect("loopback takes it");
            }
        }
    });
    address
}

/// The answer to one question: header, the question as it came, and a record for each address of its type.
fn answer(question: &[u8], rows: &[(&str, &[&str])]) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = std::str::from_utf8(question.get(at..at + length)?).ok()?;
        name = if name.is_empty() {
            label.to_owned()
        } else {
            format!("{name}.{label}")
        };
        at += length;
    }
    let kind = u16::from_be_bytes([*question.get(at)?, *question.get(at + 1)?]);
    let known = rows
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(&name))
        .map(|(_, addresses)| *addresses);
    let records: Vec<Vec<u8>> = known
        .into_iter()
        .flatten()
        .filter_map(|address| record(address, kind))
        .collect();
    let mut answer = question[..2].to_vec();
    // An answer, recursion available; and whether the name exists.
    answer.extend([
        0x81,
        if known.is_some() { 0x80 } else { 0x83 },
        0,
        1,
        0,
        u8::try_from(records.len()).ok()?,
    ]);
    answer.extend([0, 0, 0, 0]);
    answer.extend(&question[12..at + 4]);
    records.iter().for_each(|record| answer.extend(record));
    Some(answer)
}

fn record(address: &str, kind: u16) -> Option<Vec<u8>> {
    let bytes = match (address.parse().expect("an address"), kind) {
        (IpAddr::V4(v4), 1) => v4.octets().to_vec(),
        (IpAddr::V6(v6), 28) => v6.octets().to_vec(),
        _ => return None,
    };
    // The name is the question's; class IN, a minute.
    let mut record = vec![0xc0, 12];
    record.extend(kind.to_be_bytes());
    record.extend([0, 1, 0, 0, 0, 60, 0, u8::try_from(bytes.len()).ok()?]);
    record.extend(bytes);
    Some(record)
}
