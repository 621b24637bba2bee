//! Lists of words and phrases that stand as text. Knows nothing of what they are for.

/// Whether a list of words, a space between two, has this one.
pub(crate) fn listed(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The phrases of a list, a comma and a space between two.
pub(crate) fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ")
}
