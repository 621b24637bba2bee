//! Reading RDAP (RFC 9083): a domain object to what is told of it.
//!
//! Only named members are looked at. Entities below entities (abuse desks, technical contacts) never are.

use serde_json::Value;
use switchbay_sdk::http;

use crate::registration::{Answer, Registration};
use crate::{dates, name, public};

/// Entities, events and the like that are looked at.
const ITEMS_MAX: usize = 64;

/// The media type of RDAP answers.
const MEDIA_TYPE: &str = "application/rdap+json";

/// Reads an answer to the question for `domain` by its HTTP status, its media type and its body.
pub(crate) fn read(status: u16, media_type: &str, body: &[u8], domain: &str) -> Answer {
    match status {
        200..=299 => object(body, domain),
        404 => absent(media_type, body),
        429 => Answer::Throttled,
        _ => Answer::Unusable("it refused the query or failed"),
    }
}

/// Nobody has the name only where an RDAP service says so: by its media type, whose body may be left out (RFC 7480, 5.3), or by
/// an error object (RFC 9083, 6) of whatever type. Any other server that is asked for what it does not have answers 404 too.
fn absent(media_type: &str, body: &[u8]) -> Answer {
    let typed = http::media_type(media_type) == MEDIA_TYPE;
    let is_blank = body.iter().all(u8::is_ascii_whitespace);
    let object = serde_json::from_slice::<Value>(body)
        .ok()
        .filter(Value::is_object);
    let code = object
        .as_ref()
        .map(|object| &object["errorCode"])
        .filter(|code| !code.is_null());
    let says_404 =
        code.is_some_and(|code| code.as_u64() == Some(404) || code.as_str() == Some("404"));
    if says_404 || typed && code.is_none() && (is_blank || object.is_some()) {
        Answer::Free
    } else {
        Answer::Unusable("its 404 response is not an RDAP answer")
    }
}

fn object(body: &[u8], domain: &str) -> Answer {
    let Ok(object) = serde_json::from_slice::<Value>(body) else {
        return Answer::Unusable("its answer is not valid JSON");
    };
    match object["errorCode"].as_u64() {
        Some(404) => return Answer::Free,
        Some(429) => return Answer::Throttled,
        Some(_) => return Answer::Unusable("its answer is an error"),
        None => {}
    }
    let names: Vec<String> = ["ldhName", "unicodeName"]
        .iter()
        .filter_map(|member| name::host_name(object[*member].as_str()?))
        .collect();
    let class = object["objectClassName"].as_str();
    match names.is_empty() {
        _ if class.is_some_and(|class| class != "domain") => {
            return Answer::Unusable("its answer does not describe a domain");
        }
        true if class.is_none() => {
            return Answer::Unusable("its answer does not describe a domain");
        }
        false if !names.iter().any(|named| named == domain) => {
            return Answer::Unusable("its answer describes another domain");
        }
        true | false => {}
    }
    let registration = registration(&object);
    let nobodys = registration.of_nobody(statuses(&object));
    nobodys.unwrap_or_else(|| Answer::Registered {
        registration,
        referral: referral(&object),
    })
}

fn registration(object: &Value) -> Registration {
    let mut registration = Registration {
        registrar: entity(object, "registrar").and_then(registrar),
        organization: organization(object),
        creation_date: event(object, "registration"),
        updated_date: event(object, "last changed"),
        expiration_date: event(object, "expiration")
            .or_else(|| event(object, "registrar expiration")),
        dnssec: dnssec(&object["secureDNS"]).map(str::to_owned),
        ..Registration::default()
    };
    for status in statuses(object) {
        registration.add_status(status);
    }
    for server in items(&object["nameservers"]) {
        let name = server["ldhName"]
            .as_str()
            .or(server["unicodeName"].as_str());
        registration.add_name_server(name.unwrap_or_default());
    }
    registration
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(ITEMS_MAX)
}

fn statuses(object: &Value) -> impl Iterator<Item = &str> {
    items(&object["status"]).filter_map(Value::as_str)
}

fn entity<'o>(object: &'o Value, role: &str) -> Option<&'o Value> {
    let has = |entity: &&Value| {
        items(&entity["roles"])
            .any(|known| known.as_str().is_some_and(|r| r.eq_ignore_ascii_case(role)))
    };
    items(&object["entities"]).find(has)
}

fn event(object: &Value, action: &str) -> Option<String> {
    let is = |event: &&Value| {
        event["eventAction"]
            .as_str()
            .is_some_and(|known| known.eq_ignore_ascii_case(action))
    };
    dates::read(items(&object["events"]).find(is)?["eventDate"].as_str()?, 0)
}

fn dnssec(secure: &Value) -> Option<&'static str> {
    let keys = |member: &str| {
        secure[member]
            .as_array()
            .is_some_and(|keys| !keys.is_empty())
    };
    match (
        secure["delegationSigned"].as_bool(),
        keys("dsData") || keys("keyData"),
    ) {
        (Some(true), _) | (None, true) => Some("signedDelegation"),
        (Some(false), _) => Some("unsigned"),
        (None, false) => None,
    }
}

/// A text property of an entity's jCard (RFC 7095). A structured value's first text is the name.
fn card<'e>(entity: &'e Value, property: &str) -> Option<&'e str> {
    let rows = entity["vcardArray"].get(1)?;
    let row = items(rows).find(|row| {
        row[0]
            .as_str()
            .is_some_and(|name| name.eq_ignore_ascii_case(property))
    })?;
    let value = &row[3];
    value
        .as_str()
        .or_else(|| items(value).find_map(Value::as_str))
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

fn registrar(entity: &Value) -> Option<String> {
    let a_person = card(entity, "kind").is_some_and(|kind| kind.eq_ignore_ascii_case("individual"));
    let name = card(entity, "fn")
        .filter(|_| !a_person)
        .or_else(|| card(entity, "org"));
    let listed = || {
        let iana = |id: &&Value| {
            id["type"]
                .as_str()
                .is_some_and(|kind| kind.eq_ignore_ascii_case("IANA Registrar Name"))
        };
        items(&entity["publicIds"]).find(iana)?["identifier"].as_str()
    };
    name.and_then(public::registrar)
        .or_else(|| listed().and_then(public::registrar))
}

/// The organisation of a registrant that is none of a person, nor kept back by a remark.
fn organization(object: &Value) -> Option<String> {
    let entity = entity(object, "registrant").filter(|_| !organization_redacted(object))?;
    let kind = card(entity, "kind")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let redacted = items(&entity["remarks"]).any(|remark| {
        let text = remark.to_string().to_ascii_lowercase();
        text.contains("redacted for privacy") || text.contains("object redacted")
    });
    if kind == "individual" || redacted {
        return None;
    }
    card(entity, "org")
        .or_else(|| card(entity, "fn"))
        .and_then(public::organization)
}

/// Whether a member says that the registrant's organisation was left out (RFC 9537).
fn organization_redacted(object: &Value) -> bool {
    items(&object["redacted"]).any(|redacted| {
        let name = format!(
            "{} {}",
            redacted["name"]["type"], redacted["name"]["description"]
        )
        .to_ascii_lowercase();
        name.contains("registrant")
            && (name.contains("organization") || name.contains("organisation"))
    })
}

/// Where the registrar answers for the domain.
fn referral(object: &Value) -> Option<String> {
    let related = items(&object["links"]).find(|link| {
        link["rel"] == "related"
            && link["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("application/rdap+json"))
    });
    let url = related?["href"].as_str()?;
    (url.starts_with("https://") && url.len() <= 512).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(media_type: &str, body: &str, is_free: bool) {
        let expected = if is_free {
            Answer::Free
        } else {
            Answer::Unusable("its 404 response is not an RDAP answer")
        };
        assert_eq!(
            read(404, media_type, body.as_bytes(), "example.lab"),
            expected,
            "{media_type} {body}"
        );
    }

    #[test]
    fn a_404_is_an_answer_where_an_rdap_service_gave_it() {
        check("application/rdap+json", "", true);
        check("Application/RDAP+JSON; charset=utf-8", "\r\n", true);
        check("application/rdap+json", "{}", true);
        check(
            "application/rdap+json",
            r#"{"rdapConformance":["rdap_level_0"]}"#,
            true,
        );
        for media_type in [
            "application/rdap+json",
            "application/json",
            "application/problem+json",
            "text/plain",
            "",
        ] {
            check(media_type, r#"{"errorCode":404,"title":"Not Found"}"#, true);
            check(media_type, r#"{"errorCode":"404"}"#, true);
            check(media_type, r#"{"errorCode":500}"#, false);
            check(media_type, "<html>404</html>", false);
            check(media_type, "[404]", false);
        }
        for media_type in ["text/html", "application/json", "text/plain", ""] {
            check(media_type, "", false);
            check(media_type, "{}", false);
            check(media_type, r#"{"error":"no such route","code":404}"#, false);
        }
    }
}
