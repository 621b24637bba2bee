//! Folds a transfer memo to what tag 62-08 of a payload may carry: 25 characters of plain ASCII.
//!
//! It must know nothing of payloads or warnings: a caller who wants to say that a memo was changed
//! compares what came back with what was written.
//!
//! Surprising: an unsupported character becomes a space rather than nothing, so that two words
//! parted by an emoji or a line break do not run together.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The longest purpose NAPAS allows.
const LENGTH_MAX: usize = 25;

/// The memo as it will be encoded: no diacritics, single spaces, trimmed, at most 25 characters.
///
/// Empty when nothing of the memo can be kept. Folding what was folded changes nothing.
pub(crate) fn fold(memo: &str) -> String {
    // Decomposing first makes the composed and the decomposed spelling meet: ờ becomes o, a horn
    // and a grave. Vietnamese marks are all nonspacing (Mn); the spacing and enclosing marks, which
    // `is_combining_mark` takes as well, only ever modify the letter before them, so they go too
    // and a keycap 1 folds to 1.
    let letters = memo.nfd().filter(|&letter| !is_combining_mark(letter));
    let mut folded = String::with_capacity(LENGTH_MAX);
    let mut space_pending = false;
    for letter in letters.map(ascii) {
        if letter == ' ' {
            space_pending = !folded.is_empty();
            continue;
        }
        // A space is written only together with what follows it: the result needs no trimming.
        if folded.len() + usize::from(space_pending) >= LENGTH_MAX {
            break;
        }
        if space_pending {
            folded.push(' ');
            space_pending = false;
        }
        folded.push(letter);
    }
    folded
}

/// The character which stands for `letter`; a space when it has no place in a memo.
fn ascii(letter: char) -> char {
    match letter {
        // Đ has no decomposition. Ð is eth, which looks the same and is typed in its place.
        'đ' | 'ð' => 'd',
        'Đ' | 'Ð' => 'D',
        'A'..='Z' | 'a'..='z' | '0'..='9' => letter,
        '.' | '_' | '/' | ',' | ':' | '(' | ')' | '+' | '&' | '#' | '-' => letter,
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(memo: &str, expected: &str) {
        assert_eq!(fold(memo), expected, "{memo:?}");
        assert_eq!(fold(expected), expected, "folding {memo:?} twice");
    }

    #[test]
    fn plain_ascii_is_kept() {
        check("Thanh toan HD 1024", "Thanh toan HD 1024");
        check("A.B_C/D,E:F(G)H+I&J#K-L", "A.B_C/D,E:F(G)H+I&J#K-L");
        check("0123456789", "0123456789");
    }

    #[test]
    fn vietnamese_folds_alike_however_it_is_composed() {
        // Composed, decomposed, and composed letters which carry loose marks: Đặng thị Hường.
        check(
            "\u{110}\u{1EB7}ng th\u{1ECB} H\u{1B0}\u{1EDD}ng",
            "Dang thi Huong",
        );
        check(
            "\u{110}a\u{323}\u{306}ng thi\u{323} Hu\u{31B}o\u{31B}\u{300}ng",
            "Dang thi Huong",
        );
        check(
            "\u{110}\u{1EA1}\u{306}ng th\u{1ECB} H\u{1B0}\u{1A1}\u{300}ng",
            "Dang thi Huong",
        );
        // Eth instead of the Vietnamese letter, and a d with a loose stroke.
        check(
            "\u{D0}\u{103}ng, \u{F0}\u{103}ng, d\u{335}ang",
            "Dang, dang, dang",
        );
    }

    #[test]
    fn every_vietnamese_letter_has_its_ascii_letter() {
        check("ĂÂĐÊÔƠƯ ăâđêôơư", "AADEOOU aadeoou");
        check("áàảãạắằẳẵặấầẩẫậ", "aaaaaaaaaaaaaaa");
        check("éèẻẽẹếềểễệíìỉĩị", "eeeeeeeeeeiiiii");
        check("óòỏõọốồổỗộớờởỡợ", "ooooooooooooooo");
        check("úùủũụứừửữựýỳỷỹỵ", "uuuuuuuuuuyyyyy");
    }

    #[test]
    fn other_latin_diacritics_fold_too() {
        check("Crème brûlée, señor Škoda", "Creme brulee, senor Skoda");
        check("\u{212B}ngstr\u{F6}m", "Angstrom");
    }

    #[test]
    fn an_unsupported_character_becomes_a_space() {
        check("mutluluk.©Bamszlk", "mutluluk. Bamszlk");
        check("a@b", "a b");
        check("50% * 2 = 1", "50 2 1");
        check("it's \"here\"", "it s here");
        check("Straße", "Stra e");
        check("\u{FF21}\u{FF22} 1", "1");
    }

    #[test]
    fn emoji_become_a_space() {
        check("cảm ơn 🙏🏽 nhé", "cam on nhe");
        check("tiền🍜phở", "tien pho");
        check("👨‍👩‍👧 nhà", "nha");
        check("🇻🇳2026", "2026");
        check("1\u{FE0F}\u{20E3}2\u{FE0F}\u{20E3}", "12");
    }

    #[test]
    fn white_space_collapses_and_is_trimmed() {
        check("a  b   c", "a b c");
        check("  a ", "a");
        check("a\tb\r\nc", "a b c");
        check("\ta\u{A0}\u{2003}b\u{3000}", "a b");
        check("a\u{0}b\u{200B}c\u{FEFF}d", "a b c d");
    }

    #[test]
    fn nothing_left_is_an_empty_memo() {
        check("", "");
        check("   \t\n", "");
        check("🙏", "");
        check("谢谢", "");
        check("한글", "");
        check("\u{301}\u{302}", "");
    }

    #[test]
    fn a_long_memo_is_cut_to_25_characters() {
        check("abcdefghijklmnopqrstuvwxy", "abcdefghijklmnopqrstuvwxy");
        check("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxy");
        // A word that begins just inside, and one whose space is the twenty-fifth character.
        check("abcdefghijklmnopqrstuvw xyz", "abcdefghijklmnopqrstuvw x");
        check("abcdefghijklmnopqrstuvwx yz", "abcdefghijklmnopqrstuvwx");
        check("abcdefghijklmnopqrstuvwxy z", "abcdefghijklmnopqrstuvwxy");
        // The length counts what is encoded, not what was written.
        check(
            "Đặng thị Hường chuyển khoản tiền nhà",
            "Dang thi Huong chuyen kho",
        );
        check(
            "   a\u{301}   bbbbbbbbbbbbbbbbbbbbbbbbb",
            "a bbbbbbbbbbbbbbbbbbbbbbb",
        );
    }

    #[test]
    fn folding_twice_changes_nothing() {
        let nasty = [
            "a\u{301}\u{301}\u{301} \u{301} b",
            "\u{340}\u{341}\u{343}\u{344}",
            "\u{226E}\u{2260}\u{37E}\u{1FEF}\u{212A}",
            "\u{1D15E}\u{2F800}\u{FDFA}",
            "\u{E0001}\u{E0041}\u{F8FF}\u{10FFFF}",
            "\u{202E}abc\u{202C} \u{2066}def\u{2069}",
            "\u{915}\u{93F} x\u{903}y",
            "Z\u{351}\u{36B}\u{343}a\u{329}\u{31E}l\u{31F}g\u{33C}o\u{489}",
            "đ\u{323}Đ\u{306}ð\u{301}",
            "........................ .",
            "\\\"<>&#x41;%20${{}}`|~^",
        ];
        for memo in nasty {
            let once = fold(memo);
            assert_eq!(fold(&once), once, "{memo:?}");
            assert!(
                once.is_ascii() && once.len() <= 25,
                "{memo:?} gives {once:?}"
            );
        }
    }
}
