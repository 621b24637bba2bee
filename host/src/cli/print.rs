//! What commands print.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// `println!` for a command, whose reader may have gone away.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::cli::print::print_text(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Prints text as it is. A reader that has read enough ends the command quietly; any other failure is told.
pub(super) fn print_text(text: Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    let Err(error) = stdout.write_fmt(text).and_then(|()| stdout.flush()) else {
        return;
    };
    if error.kind() != ErrorKind::BrokenPipe {
        super::failed(&format!("cannot write the output: {error}"));
    }
    std::process::exit(1);
}
