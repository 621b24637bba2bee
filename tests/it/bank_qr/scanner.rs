//! Reads a QR code as a phone does: from the pixels that the data URI draws.
//!
//! Shares nothing with what draws it: resvg rasterises, rqrr decodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex_lite::Regex;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// What rqrr calls the error correction M.
const LEVEL_M: u16 = 0;

/// Draws the data URI with its own size, and gives back the one code's text. The picture must be inert, and of this size.
pub(crate) fn scan(data_url: &str, size: u64) -> String {
    let svg = svg(data_url);
    check_picture(&svg, size);
    let tree = Tree::from_str(&svg, &Options::default()).expect("an SVG");
    let pixels = u32::try_from(size).expect("a size in pixels");
    assert_eq!(
        (tree.size().width(), tree.size().height()),
        (pixels as f32, pixels as f32)
    );
    let mut pixmap = Pixmap::new(pixels, pixels).expect("a picture");
    resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
    assert!(
        pixmap.pixels().iter().all(|pixel| pixel.alpha() == 255),
        "the picture needs no background"
    );

    let side = pixels as usize;
    let grey = |x: usize, y: usize| pixmap.pixels()[y * side + x].green();
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(side, side, grey);
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1, "one code in the picture of {size} pixels");
    let (meta, text) = grids[0]
        .decode()
        .unwrap_or_else(|error| panic!("at {size} pixels: {error}"));
    assert_eq!(meta.ecc_level, LEVEL_M);
    text
}

fn svg(data_url: &str) -> String {
    let encoded = data_url
        .strip_prefix("data:image/svg+xml;base64,")
        .unwrap_or_else(|| panic!("{data_url}"));
    String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("UTF-8")
}

/// Only a background and a path, no script, no text, no style and nothing from elsewhere; width and height as asked.
fn check_picture(svg: &str, size: u64) {
    let found = |pattern: &str| -> Vec<String> {
        let pattern = Regex::new(pattern).expect("a pattern");
        pattern
            .captures_iter(svg)
            .map(|found| found[1].to_owned())
            .collect()
    };
    assert_eq!(found("<([^ />]+)"), ["svg", "rect", "path"], "{svg}");
    let attributes = [
        "xmlns",
        "width",
        "height",
        "viewBox",
        "width",
        "height",
        "fill",
        "transform",
        "shape-rendering",
        "fill",
        "d",
    ];
    assert_eq!(found(r#" ([^ ="]+)=""#), attributes, "{svg}");
    assert_eq!(
        found("((?:[a-z]+:)?//[^\"]*)"),
        ["http://www.w3.org/2000/svg"],
        "{svg}"
    );
    assert!(!svg.contains("url("), "{svg}");
    let opening = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 "#
    );
    assert!(svg.starts_with(&opening), "{svg}");
}
