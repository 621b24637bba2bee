//! Draws a payload as an SVG picture of a QR code, and wraps the picture as a data URI.
//!
//! It must know nothing of banks or transfers: a payload is any text. The picture is inert, with no
//! text, script, style or outside reference, so it may stand in an `img` element anywhere.
//!
//! Surprising: a module is a whole number of pixels, and what is left over widens the quiet zone. A
//! picture that is filled to its edge has modules of two widths (or grey seams), and about one size
//! in a hundred then cannot be read by a decoder which looks at pixels.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use fast_qr::{ECL, QRBuilder, QRCode};

/// Light modules which the standard asks for on every side; scanners find the code by them.
const QUIET_ZONE: usize = 4;
/// Room for what stands around the path.
const FRAME_LENGTH: usize = 320;
/// Room for the path: about every fourth module begins a run, which takes some fourteen characters.
const LENGTH_PER_MODULE: usize = 4;

/// The payload has more bytes than a QR code holds.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload does not fit into a QR code")]
pub(crate) struct TooLong;

/// A picture of `payload` that is `size` pixels wide and high, with medium error correction. There
/// must be a pixel for each module: 57 for the longest transfer.
pub(crate) fn svg(payload: &str, size: u32) -> Result<String, TooLong> {
    // The other error of the builder is about a version asked for, and none is.
    let code = QRBuilder::new(payload)
        .ecl(ECL::M)
        .build()
        .map_err(|_too_much_data| TooLong)?;
    let side = code.size + 2 * QUIET_ZONE;
    let pixels = size as usize;
    debug_assert!(pixels >= side, "{size} pixels cannot show {side} modules");
    let scale = pixels / side;
    let margin = (pixels - side * scale) / 2;
    let mut svg = String::with_capacity(FRAME_LENGTH + code.size * code.size * LENGTH_PER_MODULE);
    svg.push_str(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" \
         viewBox=\"0 0 {size} {size}\"><rect width=\"{size}\" height=\"{size}\" fill=\"#fff\"/>\
         <path transform=\"translate({margin} {margin})scale({scale})\" \
         shape-rendering=\"crispEdges\" fill=\"#000\" d=\""
    ));
    push_dark_runs(&mut svg, &code);
    svg.push_str("\"/></svg>");
    Ok(svg)
}

/// The picture as a URI which needs nothing else to be shown.
pub(crate) fn data_uri(svg: &str) -> String {
    const SCHEME: &str = "data:image/svg+xml;base64,";
    let mut uri = String::with_capacity(SCHEME.len() + svg.len().div_ceil(3) * 4);
    uri.push_str(SCHEME);
    BASE64_STANDARD.encode_string(svg, &mut uri);
    uri
}

/// One closed bar for each horizontal run of dark modules: half as much text as a square for every
/// module, and no seam between neighbours when a viewer scales the picture.
fn push_dark_runs(path: &mut String, code: &QRCode) {
    for row in 0..code.size {
        let mut column = 0;
        for run in code[row].chunk_by(|left, right| left.value() == right.value()) {
            if run[0].value() {
                push_number(path, 'M', column + QUIET_ZONE);
                push_number(path, ' ', row + QUIET_ZONE);
                push_number(path, 'h', run.len());
                path.push_str("v1");
                push_number(path, 'H', column + QUIET_ZONE);
                path.push('z');
            }
            column += run.len();
        }
    }
}

/// A path command, or a separator, and its number. A picture has two thousand of them: by `write!`
/// they take 50 µs instead of 11, where the QR code itself takes 160.
fn push_number(path: &mut String, command: char, number: usize) {
    path.push(command);
    push_digits(path, number);
}

fn push_digits(path: &mut String, number: usize) {
    if number >= 10 {
        push_digits(path, number / 10);
    }
    path.push(char::from(b"0123456789"[number % 10]));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules that the runs of a path fill, a row of text for each row of the picture.
    fn drawing(svg: &str, side: usize) -> String {
        let mut rows = vec![vec!['.'; side]; side];
        let path = svg.split_once(" d=\"").unwrap().1;
        let path = path.split_once('"').unwrap().0;
        for run in path.split_terminator('z') {
            let numbers: Vec<usize> = run
                .split(['M', ' ', 'h', 'v', 'H'])
                .skip(1)
                .map(|number| number.parse().unwrap())
                .collect();
            let [left, top, width, 1, back] = numbers[..] else {
                panic!("{run} is not a bar of height 1")
            };
            assert_eq!(back, left, "{run} does not close on itself");
            rows[top][left..left + width].fill('#');
        }
        rows.iter()
            .flat_map(|row| row.iter().chain(&['\n']))
            .collect()
    }

    #[track_caller]
    fn check_frame(payload: &str, size: u32, expected: &str) {
        let svg = svg(payload, size).unwrap();
        let (before, path) = svg.split_once(" d=\"").unwrap();
        let (_runs, after) = path.split_once('"').unwrap();
        assert_eq!(format!("{before} d=\"\"{after}"), expected);
    }

    #[test]
    fn the_modules_are_those_of_the_code_within_a_quiet_zone() {
        // Read back with rqrr when it was written down.
        let expected = "\
.............................
.............................
.............................
.............................
....#######.#.###.#######....
....#.....#.###.#.#.....#....
....#.###.#.####..#.###.#....
....#.###.#..#.##.#.###.#....
....#.###.#.#...#.#.###.#....
....#.....#....##.#.....#....
....#######.#.#.#.#######....
...............##............
....#..########.##..#.###....
.....####...###.#.#.#.#......
.......#.##...#..##.###......
.....##.#....#.#.....##......
.....##..###.##...#..###.....
............##.##..#.#..#....
....#######.##..#####........
....#.....#.#..###.###.##....
....#.###.#.#..##.##.##.#....
....#.###.#.#.###...###......
....#.###.#..##...#...###....
....#.....#......##.#.##.....
....#######.#..#.....###.....
.............................
.............................
.............................
.............................
";
        assert_eq!(drawing(&svg("VN", 320).unwrap(), 29), expected);
    }

    #[test]
    fn a_picture_is_a_white_square_and_one_path() {
        check_frame(
            "VN",
            320,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"320\" height=\"320\" \
             viewBox=\"0 0 320 320\"><rect width=\"320\" height=\"320\" fill=\"#fff\"/>\
             <path transform=\"translate(0 0)scale(11)\" shape-rendering=\"crispEdges\" fill=\"#000\" d=\"\"/></svg>",
        );
    }

    #[test]
    fn the_longest_transfer_is_a_code_of_49_modules() {
        // Version 8, the least which holds 150 bytes at level M.
        check_frame(
            "00020101021238630010A00000072701330006970436011900000000000000000010208QRIBFTTA\
             5303704541399999999999995802VN62290825Dang thi Huong chuyen kho6304A7FF",
            1024,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1024\" height=\"1024\" \
             viewBox=\"0 0 1024 1024\"><rect width=\"1024\" height=\"1024\" fill=\"#fff\"/>\
             <path transform=\"translate(27 27)scale(17)\" shape-rendering=\"crispEdges\" fill=\"#000\" d=\"\"/></svg>",
        );
    }

    #[test]
    fn markup_in_a_payload_stays_out_of_the_picture() {
        let svg = svg("\"/><script>alert(1)</script>", 320).unwrap();
        assert!(!svg.contains("script"), "{svg}");
    }

    #[test]
    fn a_payload_of_more_than_2331_bytes_is_too_long() {
        assert!(svg(&"a".repeat(2331), 320).is_ok());
        assert_eq!(svg(&"a".repeat(2332), 320), Err(TooLong));
    }

    #[test]
    fn a_data_uri_is_base64_of_the_picture() {
        assert_eq!(data_uri("<svg/>"), "data:image/svg+xml;base64,PHN2Zy8+");
        assert_eq!(
            data_uri("<svg />"),
            "data:image/svg+xml;base64,PHN2ZyAvPg=="
        );
    }
}
