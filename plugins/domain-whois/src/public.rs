//! What of a free text may be told: the names of registrars and organisations, and never of persons.
//!
//! Every free text of a result passes here, whichever protocol brought it. In doubt it is kept back.

use crate::words::{listed, phrases};

/// Characters of a name.
const NAME_MAX: usize = 160;

/// Words (or parts of words, in scripts without spaces) that stand in place of what a registry keeps back.
const KEPT_BACK: &str = "\
    redact, privacy, private person, proxy, data protected, not disclosed, nondisclosed, non disclosed, withheld, \
    masked, masking, whoisguard, gdpr, anonym, hidden, not shown, not applicable, n/a, identity protect, \
    protection service, unavailable, not available, not published, statutory, undisclosed, unknown, individual, \
    natural person, 비공개";

/// Words that only an organisation's name has, wherever they stand in it. A `trust` is one, and most that register domains are
/// named after persons.
const WORDS: &str = "\
    academy administration agency aktiengesellschaft alliance association asociacion associacao \
    assurance authority centrum chamber college commission committee commune community company consortium \
    consulting cooperative corporation council department enterprise enterprises federation fondation foundation \
    fundacao fundacion fundacja gesellschaft gmbh government group gruppe holding holdings hosting hospital \
    incorporated industries institut institute instituto insurance international internet laboratories labs \
    library limitada limited logistics ministerio ministry museum nadace network networks office organisation \
    organization partners politechnika registry school services software solutions societe society stiftung studio \
    systems technologies technology telecom telekom universidad universidade universita universitaet \
    universitat universiteit university universität université università universitet uniwersytet univerzita \
    verein vereniging yliopisto kommune kommun instytut ústav město obec şirketi sirketi";

/// Words that make an organisation's name together with an `of` behind them: what they are of may be a person's name, so none
/// stands here that people found in their own.
const HEADS: &str = "bank board bureau city county diocese republic state town";

/// Legal forms, as the last words of a name, without their dots.
const FORMS: &str = "\
    ab ag aps as asa asbl bhd bv bvba co corp dd doo ead eg eirl eireli ek eood ev gbr gesmbh gie hf inc ivs jsc \
    kft kg kgaa kk ks lda llc llp lp ltd ltda mbh me nv nyrt ohg ood oy oyj pbc plc pjsc pte pty pvt sa sab sarl \
    sas sasu sca scrl se sia sicav sl slu snc spa spk spol spolka spzoo sprl spzo cv srl srls sro stichting svc \
    uab ug ulc vof vzw zoo zrt ооо ао зао пао оао";

/// Legal forms and kinds of organisations in scripts without spaces.
const PARTS: &str = "株式会社 有限会社 合同会社 財団 社団 大学 公司 集团 集團 协会 大學 研究院 委员会 銀行 银行 주식회사 유한회사 (주) ㈜ 대학 재단 협회 공사";

/// What a text in a registrar's place tells: its name, without what stands in brackets behind it.
pub(crate) fn registrar(text: &str) -> Option<String> {
    // Registrars are called `R01-RU` and the like; what has more digits is somebody's handle.
    let handle = |name: &str| handle(name) && name.bytes().filter(u8::is_ascii_digit).count() >= 4;
    plain(text).filter(|name| !kept_back(name) && !handle(name) && !street(name))
}

/// What a text tells in a holder's place: an organisation's name that is plainly one. A place that is meant for such names
/// proves nothing: persons who register a domain write their own there, or a part of it.
pub(crate) fn organization(text: &str) -> Option<String> {
    let name = plain(text)
        .filter(|name| !kept_back(name) && !handle(name) && !street(name) && !of_a_person(name))?;
    is_organization(&name).then_some(name)
}

/// The text in one line, without what stands in brackets behind it, or nothing where it holds an address of mail or of
/// a page, a number to call, or no letters.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let aside = |rest: &str| {
        rest.contains("://") || rest.contains('=') || rest.bytes().any(|byte| byte.is_ascii_digit())
    };
    let brackets = text.match_indices(['(', '[']).map(|(at, _)| at);
    let end = brackets
        .filter(|at| *at > 0)
        .find(|at| aside(&text[*at..]))
        .unwrap_or(text.len());
    let words: Vec<&str> = text[..end]
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ");
    let text = text.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '*' | ' '));
    let quoted = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|rest| !rest.contains('"'));
    let text = quoted.unwrap_or(text).to_owned();
    let length = text.chars().count();
    let kept =
        !text.contains(['@', '<', '>', '{', '}']) && !text.contains("://") && !callable(&text);
    (kept && (2..=NAME_MAX).contains(&length) && text.chars().any(char::is_alphabetic))
        .then_some(text)
}

/// Whether seven digits stand in a row, with nothing but the marks of a phone number between them.
fn callable(text: &str) -> bool {
    let mut digits = 0;
    text.chars().any(|c| {
        match c {
            c if c.is_numeric() => digits += 1,
            ' ' | '-' | '.' | '(' | ')' | '/' | '+' => {}
            _ => digits = 0,
        }
        digits >= 7
    })
}

fn kept_back(name: &str) -> bool {
    let name = name.to_lowercase();
    phrases(KEPT_BACK).any(|word| name.contains(word))
}

/// A registry's name for a contact: one word with a number in it.
fn handle(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    !name.contains(' ') && (digits >= 4 || digits >= 1 && name.contains(['-', ':', '_']))
}

/// A number beside a word for a street.
fn street(name: &str) -> bool {
    const STREETS: &str = "street st road rd avenue ave av lane drive dr boulevard blvd rue via calle rua \
        ul ulica strasse straße str weg platz gatan vej gate straat laan suite apt box";
    let lower = name.to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    const ENDS: &str = "straße strasse straat gatan vägen vej utca weg gasse platz katu";
    let ends = |word: &str| ENDS.split(' ').any(|end| word.ends_with(end));
    lower.bytes().any(|byte| byte.is_ascii_digit())
        && words.any(|word| listed(STREETS, word) || ends(word))
}

/// Whether the name says that a person stands behind it.
fn of_a_person(name: &str) -> bool {
    let name = format!(" {} ", name.to_lowercase());
    const MARKS: &str = " t/a , d/b/a , dba , trading as , c/o , care of , estate of , heirs of , on behalf of , attn , \
        attn: , mr , mr. , mrs , mrs. , ms , dr. , herr , frau ";
    MARKS.split(',').any(|mark| name.contains(mark))
}

/// Whether a name is plainly that of an organisation.
fn is_organization(name: &str) -> bool {
    let lower = name.to_lowercase();
    if PARTS.split(' ').any(|part| lower.contains(part)) {
        return true;
    }
    let undotted: String = lower.chars().filter(|c| *c != '.').collect();
    let words: Vec<&str> = undotted
        .split(|c: char| !(c.is_alphanumeric() || c == '/'))
        .filter(|word| !word.is_empty())
        .collect();
    let squeezed: Vec<String> = words.iter().map(|word| word.replace('/', "")).collect();
    // `S. p. A.` and `sp. z o.o.` fall apart into letters.
    let last = squeezed[squeezed.len().saturating_sub(3)..].concat();
    // These may be the end of a name, unless they have the marks of a form or are the only capitals.
    let may_be_a_name = |word: &str| listed("as co dd doo eg ek ev ks me sa sas se sia ug", word);
    let end = name.rsplit(' ').next().unwrap_or_default();
    let stands_out = !end.contains(char::is_lowercase) && name.contains(char::is_lowercase);
    let form = squeezed
        .last()
        .filter(|word| !may_be_a_name(word) || end.contains(['.', '/']) || stands_out);
    squeezed.len() > 1
        && (squeezed.iter().any(|word| listed(WORDS, word))
            || squeezed
                .windows(2)
                .any(|two| listed(HEADS, &two[0]) && two[1] == "of")
            || form.is_some_and(|word| listed(FORMS, word))
            || squeezed
                .first()
                .is_some_and(|word| listed("ооо ао зао пао оао stichting pt", word))
            || listed("spa srl spzoo sro sa as ltd", &last)
            || last.ends_with("spzoo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organisations_are_told() {
        for name in [
            "Example Holdings",
            "Beispiel GmbH",
            "Ejemplo S.A.",
            "Przykład sp. z o.o.",
            "Příklad, s.r.o.",
            "Esempio S. p. A.",
            "例子有限公司",
            "(주)예시",
            "Eksempel A/S",
            "Пример ООО",
            "ООО Пример",
            "Example Co., Ltd.",
            "EXAMPLE A/S",
            "EXAMPLE CO.",
            "Example SE",
            "Bank of Example",
            "Smith Holdings",
            "Smith, John & Mary Ltd",
        ] {
            assert_eq!(organization(name).as_deref(), Some(name));
        }
    }

    #[test]
    fn what_could_be_a_person_and_what_is_kept_back_is_not() {
        let back = [
            "REDACTED FOR PRIVACY",
            "Private Person",
            "Domains By Proxy, LLC",
            "Statutory Masking Enabled",
            "Not Disclosed",
            "c/o Example GmbH",
            "John Smith t/a Example Ltd",
            "12 Example Street",
            "ABC123-FRNIC",
            "exampl1234-00001",
            "me@example.com",
            "+1.2025550100",
            "Example Ltd +44 20 7946 0000",
            "https://example.com/",
            "Jane Doe",
            "DOE, JANE",
            "Mr. X Example Ltd",
            "Estate of Jane Doe",
            "The Estate of the late Jane Ann Doe",
            "care of Jane Doe",
            "Care of Jane Doe, Example Company",
            "for Jane Doe",
            "María del Carmen de la Torre y López",
            "JANE SE",
            "DOE, JANE CO",
            "Ueda",
            "UEDA",
            "NGUYENVANA",
            "nguyenvana",
            "Smith, John & Mary",
            "John and Mary Smith",
            "John + Mary Smith",
            "Smith & Smith",
            "Smith/Jones",
            "The John Smith Family Trust",
            "Jane Doe 24",
            "jdoe24",
            "上田",
            "Exemplar",
        ];
        for text in back {
            assert_eq!(organization(text), None, "{text}");
        }
    }

    #[test]
    fn a_registrar_is_told_without_what_stands_behind_it() {
        assert_eq!(
            registrar("Example Registrar Ltd [Tag = EXAMPLE]").as_deref(),
            Some("Example Registrar Ltd")
        );
        assert_eq!(
            registrar("Example Corp.(http://example.com)").as_deref(),
            Some("Example Corp.")
        );
        assert_eq!(registrar("EXAMPLE-RU").as_deref(), Some("EXAMPLE-RU"));
        assert_eq!(
            registrar("(주)예시(http://example.kr)").as_deref(),
            Some("(주)예시")
        );
        assert_eq!(registrar("R01-RU").as_deref(), Some("R01-RU"));
        assert_eq!(registrar("help@example.com"), None);
    }
}
