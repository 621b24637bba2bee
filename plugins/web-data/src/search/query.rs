//! A query within the limits of a provider that takes fewer characters or words than the specification lets callers give.
//!
//! Pure.

/// As many whole words as are taken, one space between two. A first word that is longer by itself is cut.
pub(super) fn cut(query: &str, characters_max: usize, words_max: usize) -> String {
    let (mut cut, mut characters) = (String::new(), 0);
    for word in query.split_whitespace().take(words_max) {
        let length = word.chars().count();
        if cut.is_empty() {
            cut.extend(word.chars().take(characters_max));
            characters = length;
        } else if characters + 1 + length <= characters_max {
            cut.push(' ');
            cut.push_str(word);
            characters += 1 + length;
        } else {
            break;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, characters_max: usize, words_max: usize, expected: &str) {
        assert_eq!(cut(query, characters_max, words_max), expected);
    }

    #[test]
    fn a_query_is_cut_between_two_words() {
        check("one two  three", 13, 50, "one two three");
        check("one two three", 12, 50, "one two");
        check("one two three", 13, 2, "one two");
        check("été été", 7, 50, "été été");
        check("été été", 6, 50, "été");
        check("abcdef g", 4, 50, "abcd");
        check("word", 400, 50, "word");
    }
}
