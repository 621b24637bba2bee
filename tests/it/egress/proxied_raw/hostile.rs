//! Requests that no reader should take, or that ask for what may not be had: each with the rule that it is refused by.

use super::super::proxied::lend;
use super::super::{dials, start};
use super::{say, word};

/// Status, first word, and what is said.
const HOSTILE: [(u16, &str, &str); 66] = [
    // No request, or one that two readers read in two ways.
    (400, "refused", "\0\n"),
    (400, "refused", "\x16\x03\x01\x02\n"),
    (400, "refused", "GET\r\n\r\n"),
    (
        400,
        "refused",
        "GET http://site.test/\r\nHost: site.test\r\n\r\n",
    ),
    (
        505,
        "refused",
        "GET http://site.test/ HTTP/2.0\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (505, "refused", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    (
        400,
        "refused",
        "GET  http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        505,
        "refused",
        "GET http://site.test/ x HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/\tHTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/\0 HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://s\u{ef}te.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "G@T http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\nHost: site.test\nAUTH\n\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "\r\nGET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX: a\r\n b\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost : site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\n Host: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nno colon\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX: a\rb\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX: a\0b\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nHost: other.test\r\nAUTH\r\n\r\n",
    ),
    // Where a body ends.
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 5, 5\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: +5\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 0x5\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: -1\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length:\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: identity\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: xchunked\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.0\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    (
        413,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 99999999\r\n\r\n",
    ),
    (
        400,
        "refused",
        "POST http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
    ),
    (
        400,
        "refused",
        "CONNECT site.test:80 HTTP/1.1\r\nHost: a\r\nAUTH\r\nContent-Length: 5\r\n\r\nhello",
    ),
    (
        400,
        "refused",
        "CONNECT site.test:80 HTTP/1.1\r\nHost: a\r\nAUTH\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    // Whose it is.
    (
        407,
        "no_credential",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    ),
    (
        407,
        "no_credential",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAuthorization: Basic ZmV0Y2hlczp4\r\n\r\n",
    ),
    (
        407,
        "no_credential",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nProxy-Authorization: Basic ZmV0Y2hlczp4\r\n\r\n",
    ),
    (
        407,
        "no_credential",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nProxy-Authorization: Basic !!!\r\n\r\n",
    ),
    (
        407,
        "no_credential",
        "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nProxy-Authorization: Bearer x\r\n\r\n",
    ),
    (
        407,
        "no_credential",
        "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET http://site.test/ HTTP/1.1\r\nHost: a\r\nAUTH\r\nAUTH\r\n\r\n",
    ),
    // What is asked for.
    (
        400,
        "refused",
        "GET / HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "GET //site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "refused",
        "OPTIONS * HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "GET site.test:80 HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "GET http://u:p@site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        403,
        "not_public",
        "GET http://127.0.0.1/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        403,
        "not_public",
        "GET http://[::ffff:127.0.0.1]/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        403,
        "not_granted",
        "TRACE http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        403,
        "not_granted",
        "connect http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT site.test HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT site.test: HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT :80 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT site.test:65536 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT site.test:+80 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT u:p@site.test:80 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT site.test/x:80 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
    (
        400,
        "not_acceptable",
        "CONNECT http://site.test:80 HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
    ),
];

#[tokio::test]
async fn each_hostile_request_is_refused_by_its_rule_and_nothing_is_dialled() {
    let service = start().await;
    let (lent, other) = (lend(&service, 600).await, lend(&service, 600).await);
    for (status, expected, said) in HOSTILE {
        let answer = say(&lent, said).await;
        assert_eq!(
            (answer.status, word(&answer).as_str()),
            (status, expected),
            "{said:?}"
        );
        let challenge = answer
            .headers
            .get("proxy-authenticate")
            .and_then(|value| value.to_str().ok());
        assert_eq!(
            challenge.is_some_and(|told| told.starts_with("Basic realm=")),
            status == 407,
            "{said:?}"
        );
    }
    let long = format!(
        "GET http://site.test/{} HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
        "x".repeat(40_000)
    );
    assert_eq!(say(&lent, &long).await.status, 431);
    let headers = (0..40_000).map(|_| "x").collect::<String>();
    let large =
        format!("GET http://site.test/ HTTP/1.1\r\nHost: a\r\nX: {headers}\r\nAUTH\r\n\r\n");
    assert_eq!(say(&lent, &large).await.status, 431);
    let many = format!(
        "GET http://site.test/ HTTP/1.1\r\nHost: a\r\n{}AUTH\r\n\r\n",
        "X: y\r\n".repeat(130)
    );
    assert_eq!(say(&lent, &many).await.status, 431);
    let url = format!(
        "GET http://site.test/{} HTTP/1.1\r\nHost: a\r\nAUTH\r\n\r\n",
        "x".repeat(25_000)
    );
    assert_eq!(
        (say(&lent, &url).await.status, word(&say(&lent, &url).await)),
        (400, "not_acceptable".to_owned())
    );
    // A password opens nothing with a letter less or more, and one's own opens with another's no more than before.
    let shorter = &other.authorization[..other.authorization.len() - 4];
    for wrong in [
        shorter.to_owned(),
        format!("{}AAAA", other.authorization),
        other.authorization.to_lowercase(),
    ] {
        let said = format!(
            "GET http://site.test/ HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {wrong}\r\n\r\n"
        );
        assert_eq!(say(&lent, &said).await.status, 407, "{wrong}");
    }
    assert_eq!(dials(&service).await, 0.0);
}
