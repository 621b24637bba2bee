//! What Meta answers by its codes, which its three providers share.

use serde_json::json;

use super::{INVALID_RESPONSE, LIMITED, NOT_FOUND, PRIVATE, UNAVAILABLE, UPSTREAM, check};
use crate::lab::Reply;

/// What Meta says of its errors. The message could hold the token, or the app's name.
fn graph(status: u16, code: i64, subcode: i64, message: &str) -> Reply {
    let error = json!({
        "message": message, "type": "OAuthException", "code": code, "error_subcode": subcode, "fbtrace_id": "AbC",
    });
    Reply::json(status, &json!({ "error": error }))
}

const APP: &str = "(#10) To use 'Oembed Read', your use of this endpoint must be reviewed and approved by Facebook.";

/// The status and code of a refusal.
type Refusal = (u16, &'static str);

/// Status, code, subcode and message of an error, and what it is told as.
const ROWS: [(u16, i64, i64, &str, Refusal); 26] = [
    (
        400,
        100,
        33,
        "Unsupported get request. Object with ID 'x' does not exist",
        NOT_FOUND,
    ),
    (400, 100, 0, "Invalid URL", NOT_FOUND),
    (
        404,
        803,
        0,
        "Some of the aliases you requested do not exist",
        NOT_FOUND,
    ),
    (
        400,
        24,
        2_207_046,
        "Media not found or embeds are disabled",
        PRIVATE,
    ),
    (400, 24, 0, "The requested resource does not exist", PRIVATE),
    (400, 100, 2_207_046, "Embeds are off", PRIVATE),
    (400, 400, 0, "Bad", PRIVATE),
    (403, 10, 0, "The owner does not permit this", PRIVATE),
    (400, 4, 0, "Application request limit reached", LIMITED),
    (400, 17, 0, "User request limit reached", LIMITED),
    (403, 32, 0, "Page request limit reached", LIMITED),
    (
        400,
        613,
        0,
        "Calls to this api have exceeded the rate limit",
        LIMITED,
    ),
    (400, 80_000, 0, "There have been too many calls", LIMITED),
    (400, 80_014, 0, "There have been too many calls", LIMITED),
    (
        400,
        368,
        0,
        "The action attempted has been deemed abusive",
        LIMITED,
    ),
    (429, 0, 0, "Too many", LIMITED),
    (
        400,
        190,
        463,
        "Error validating access token: Session has expired",
        UNAVAILABLE,
    ),
    (400, 104, 0, "Incorrect signature", UNAVAILABLE),
    (
        403,
        10,
        0,
        "(#10) Application does not have permission for this action",
        UNAVAILABLE,
    ),
    (400, 10, 0, APP, UNAVAILABLE),
    (403, 200, 0, "Provide valid app ID", UNAVAILABLE),
    (403, 299, 0, "Permissions error", UNAVAILABLE),
    (500, 1, 99, "An unknown error occurred", UPSTREAM),
    (503, 2, 0, "Service temporarily unavailable", UPSTREAM),
    (500, 80_015, 0, "Of nobody's list", UPSTREAM),
    (200, 77_777, 0, "With a status of success", UPSTREAM),
];

#[tokio::test]
async fn what_meta_answers_by_its_codes() {
    for (number, (status, code, subcode, message, expected)) in ROWS.into_iter().enumerate() {
        let reply = || graph(status, code, subcode, message);
        let posts = [
            (
                format!("https://www.facebook.com/a/posts/{}", 9100 + number),
                format!("posts%2F{}", 9100 + number),
            ),
            (
                format!("https://www.instagram.com/p/Lab{}/", 9100 + number),
                format!("p%2FLab{}", 9100 + number),
            ),
            (
                format!("https://www.threads.com/@a/post/Lab{}", 9100 + number),
                format!("post%2FLab{}", 9100 + number),
            ),
        ];
        for (url, holds) in &posts {
            check(url, holds, reply(), expected).await;
        }
    }
    check(
        "https://www.facebook.com/a/posts/9190",
        "posts%2F9190",
        Reply::page(502, "Sorry"),
        UPSTREAM,
    )
    .await;
    check(
        "https://www.facebook.com/a/posts/9191",
        "posts%2F9191",
        Reply::page(200, "Log in"),
        INVALID_RESPONSE,
    )
    .await;
}
