//! `switchbay plugin call`: an operation that a plugin serves to the operator alone.

use std::io::{self, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::CallArguments;
use crate::base::json::strict_json;
use crate::cli::CommandFailure;
use crate::transport::operator::endpoint::EndpointRequest;
use crate::transport::operator::operations::{CallOrder, CalledOperation, OperationPath};
use crate::transport::operator::routes::CallOperation;

/// More than any operation takes.
const INPUT_BYTES_MAX: u64 = 2 << 20;

pub(super) async fn call(arguments: CallArguments) -> Result<(), CommandFailure> {
    let CallArguments {
        plugin,
        operation,
        input,
        common,
        reason,
    } = arguments;
    let input = input.as_deref().map(read).transpose()?.unwrap_or_default();
    let request = EndpointRequest::<CallOperation>::at(OperationPath { plugin, operation })
        .with(CalledOperation(reason.with(CallOrder { input })));
    let answer: Value = common.ask_server(request).await?;
    say!("{}", for_terminals(&format!("{answer:#}")));
    Ok(())
}

/// The JSON object in a file, or on standard input where that is named.
fn read(path: &Path) -> Result<Map<String, Value>, CommandFailure> {
    let read = if path == Path::new("-") {
        bytes(io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(bytes)
    };
    let failed = |why: String| CommandFailure::of(format!("the input {} {why}", path.display()));
    let read = read.map_err(|error| failed(format!("cannot be read: {error}")))?;
    if read.len() as u64 > INPUT_BYTES_MAX {
        return Err(failed(format!("has more than {INPUT_BYTES_MAX} bytes")));
    }
    match strict_json(&read) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err(failed("must be a JSON object".to_owned())),
        Err(malformed) => Err(failed(malformed.to_string())),
    }
}

/// The same JSON without characters that a terminal may obey: a string may hold what JSON lets stand as it is.
fn for_terminals(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, '\u{7f}'..='\u{9f}') {
            shown.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    from.take(INPUT_BYTES_MAX + 1).read_to_end(&mut read)?;
    Ok(read)
}
