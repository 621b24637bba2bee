//! What holds for all operations: how to call, what a response looks like, limits, and the codes of all of them.

use std::fmt::{self, Write as _};

use crate::contract::error::Code;
use crate::published::Site;
use crate::published::refusals::{COMMON, OF_TERMS};

/// What this is, and where the rest is.
pub(crate) fn write_opening(text: &mut String, site: &Site) -> fmt::Result {
    let base_url = &site.base_url;
    writeln!(
        text,
        "# Switchbay developer guide\n\n\
         Each operation is both a REST route and a tool for agents (MCP), unless the table says otherwise. This guide is \
         generated from the operations that are being served.\n\n\
         - REST: paths are below `{base_url}`; [OpenAPI 3.1]({base_url}/openapi.json) describes them for machines.\n\
         - MCP: `{base_url}/mcp`, Streamable HTTP. A tool takes the arguments of its operation and returns what REST returns: \
         the whole envelope as `structuredContent`, or, with `isError`, the envelope of a failure as text. Discovery needs no \
         credential.\n"
    )
}

/// The conventions.
pub(crate) fn write(text: &mut String, site: &Site) -> fmt::Result {
    text.write_str(CALLS)?;
    if let Some(issuer) = &site.issuer {
        writeln!(
            text,
            "Instead of an API key you can send an access token of `{issuer}` (RFC 9068) with the operation's scope, as \
             `Authorization: Bearer TOKEN`. Its limits belong to its client and subject together.\n"
        )?;
    }
    text.write_str(RESPONSES)?;
    text.write_str(LIMITS)?;
    writeln!(
        text,
        "Calls of one account that may run at once: {} unless the account has its own number. A call above that is refused \
         with 429 `USAGE_CONCURRENCY_EXCEEDED` and `Retry-After: 1`.\n",
        site.credits.concurrency
    )?;
    text.write_str(REPEATS)
}

const CALLS: &str = "\
## Calls

Send an API key as `Authorization: Bearer KEY` or in the header `x-service-api-key`. A key carries scopes, and each operation \
names the one that it needs. Never put a key into a URL. The examples read it from the variable `SWITCHBAY_KEY`.

POST takes a JSON object with `Content-Type: application/json`; GET and DELETE take their arguments from the path and the query. \
Unknown fields, fields that appear more than once, and numbers such as `1.0` for an integer are refused; `null` for an optional \
field counts as omitted. Length is counted in characters.

";

const RESPONSES: &str = "\
## Responses

A success is `{ \"success\": true, \"data\": … }`; the fields of `data` are listed with each operation. A failure is \
`{ \"success\": false, \"error\": { \"code\", \"message\" }, \"data\": { \"requestId\", … } }`: branch on `error.code`; the message is \
for people. In the `data` of a failure only `requestId` is always present:

| field | type | meaning |
| - | - | - |
| requestId | string (uuid) | the request's id, as in the header `X-Request-Id`; quote it when you ask for help |
| retryAfter | integer | seconds until a retry may help, as in the header `Retry-After` |
| resetAt | string (date-time) | when the limit that was reached resets |
| field | string | the path of the offending field |
| max, min | number | the bound that the field violates |

Timestamps are ISO 8601 in UTC unless stated otherwise.

";

const LIMITS: &str = "\
## Limits

Every admitted call, even one that fails, takes a slot in each window that counts it; a call above a limit is refused with 429 and \
`Retry-After`. The headers are sent where the limit applies, on successes and failures alike; each `-Reset` is in Unix seconds.

| limit | applies to | headers | code above it |
| - | - | - | - |
| window of the credential | each API key, its account, or OAuth client and subject | `X-ApiKey-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Window` (seconds) | `RATE_LIMITED` |
| window of the operation | the same credential; stated with the operation | the same, where this window has the least left | `RATE_LIMITED` |
| calendar month (UTC) | each API key, or OAuth client and subject | `X-ApiKey-Monthly-Limit`, `-Remaining`, `-Reset` | `MONTHLY_QUOTA_EXCEEDED` |
| credits per calendar month | the account of a self-service key; a failure returns them | `X-ApiKey-Credit-Cost` (of this call), `-Limit`, `-Reset` | `API_CREDITS_EXCEEDED` |
| processor time per minute | each caller, across all operations and jobs of one tag in /openapi.json | | `RATE_LIMITED` |
| window of an address | callers without a credential, from this service's own pages | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | `RATE_LIMITED` |

";

const REPEATS: &str = "\
## Calls that must not happen twice

With a self-service key, `Idempotency-Key` identifies a call by a value of your choice: 1 to 80 characters of `a-z`, `A-Z`, `0-9`, \
`_` and `-`. Once such a call is admitted, another with the same value is refused with 409 for 24 hours and costs nothing; the first \
response is not sent again. `USAGE_CONCURRENCY_EXCEEDED` leaves the value free. The header is ignored for other credentials. \
Operations that start something take a `requestId` instead, from every caller: after a timeout, send the same one again to learn \
whether the first call was accepted.

";

/// The codes that any operation may return, and those of the routes.
pub(crate) fn write_codes(text: &mut String) -> fmt::Result {
    writeln!(
        text,
        "## Error codes\n\nEvery operation may return these codes; an operation's own codes are listed with it.\n"
    )?;
    writeln!(text, "| status | code | when |\n| - | - | - |")?;
    let mut codes = COMMON.to_vec();
    codes.extend([Code::NotFound, Code::MethodNotAllowed]);
    write_rows(text, &mut codes)?;
    writeln!(
        text,
        "\nOnly some operations return these codes, depending on their limits:\n\n| status | code | when |\n| - | - | - |"
    )?;
    write_rows(text, &mut OF_TERMS.to_vec())?;
    writeln!(text)
}

fn write_rows(text: &mut String, codes: &mut [Code]) -> fmt::Result {
    codes.sort_by_key(|code| code.status().as_u16());
    codes.iter().try_for_each(|code| {
        writeln!(
            text,
            "| {} | {} | {} |",
            code.status().as_u16(),
            code.name(),
            code.when()
        )
    })
}
