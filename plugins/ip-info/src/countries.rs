//! What a country's two letters say by themselves: its English name, its continent, and whether it is in the European Union.
//!
//! For databases that say the letters alone. Facts stand in `countries.tsv`.

/// Letters, name, continent's letters, and `eu`, a line each.
const TABLE: &str = include_str!("countries.tsv");

/// A country or territory of ISO 3166-1, or Kosovo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Country {
    pub(crate) name: &'static str,
    pub(crate) continent_code: &'static str,
    pub(crate) is_eu: bool,
}

/// By its two letters, in upper case.
pub(crate) fn find(code: &str) -> Option<Country> {
    let row = TABLE
        .lines()
        .find_map(|line| line.strip_prefix(code)?.strip_prefix('\t'))?;
    let mut cells = row.split('\t');
    let (name, continent_code) = (cells.next()?, cells.next()?);
    Some(Country {
        name,
        continent_code,
        is_eu: cells.next() == Some("eu"),
    })
}

/// The English name of a continent.
pub(crate) fn continent(code: &str) -> Option<&'static str> {
    Some(match code {
        "AF" => "Africa",
        "AN" => "Antarctica",
        "AS" => "Asia",
        "EU" => "Europe",
        "NA" => "North America",
        "OC" => "Oceania",
        "SA" => "South America",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole() {
        let codes: Vec<&str> = TABLE
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        assert_eq!(codes.len(), 250);
        assert!(
            codes.is_sorted_by(|one, two| one < two),
            "each once, in order"
        );
        for code in codes {
            let country = find(code).unwrap_or_else(|| panic!("{code}"));
            assert!(
                code.len() == 2
                    && !country.name.is_empty()
                    && continent(country.continent_code).is_some(),
                "{code}"
            );
        }
    }

    #[test]
    fn a_country_is_found_by_its_letters_alone() {
        let vietnam = Country {
            name: "Vietnam",
            continent_code: "AS",
            is_eu: false,
        };
        assert_eq!(find("VN"), Some(vietnam));
        assert_eq!(find("FR").map(|country| country.is_eu), Some(true));
        assert_eq!(find("GB").map(|country| country.is_eu), Some(false));
        for none in ["", "V", "vn", "VNM", "ZZ", "\t", "eu"] {
            assert_eq!(find(none), None, "{none:?}");
        }
        assert_eq!(continent("XX"), None);
    }
}
