//! The invariants of the code itself, as `host/src/lib.rs` states them.

#[test]
fn every_file_opens_with_its_purpose() {
    let host = crate::support::workspace().join("host/src/lib.rs");
    assert!(std::fs::read_to_string(host).expect("it is there").starts_with("//!"));
}
