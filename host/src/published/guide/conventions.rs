//! What holds for all operations: how to call, what an answer looks like, limits, and the codes of all of them.

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
         A set of operations, each a REST route and a tool for agents (MCP). This guide is made from the operations that are \
         served now.\n\n\
         - REST: paths below `{base_url}`; [OpenAPI 3.1]({base_url}/openapi.json) describes them for machines.\n\
         - MCP: `{base_url}/mcp`, Streamable HTTP. A tool takes the arguments of its operation and answers what REST answers: \
         the whole envelope as `structuredContent`, or with `isError` a failure's envelope as text. Discovery needs no \
         credential.\n"
    )
}

/// The conventions.
pub(crate) fn write(text: &mut String, site: &Site) -> fmt::Result {
    text.write_str(CALLS)?;
    if let Some(issuer) = &site.issuer {
        writeln!(
            text,
            "An access token of `{issuer}` (RFC 9068) with the operation's scope is sent as `Authorization: Bearer TOKEN`; its \
             limits are those of its client and subject together.\n"
        )?;
    }
    text.write_str(ANSWERS)?;
    text.write_str(LIMITS)?;
    writeln!(
        text,
        "Calls of one account that run at once: {} unless its plan has a number of its own. One more is 429 \
         `USAGE_CONCURRENCY_EXCEEDED` with `Retry-After: 1`.\n",
        site.credits.concurrency
    )?;
    text.write_str(REPEATS)
}

const CALLS: &str = "\
## Calls

Send an API key as `Authorization: Bearer KEY` or in the header `x-service-api-key`. A key carries scopes, and each operation \
names the one that it needs. Never put a key into a URL. The examples read it from the variable `SWITCHBAY_KEY`.

POST takes a JSON object with `Content-Type: application/json`, GET and DELETE take their arguments from the path and the query. \
Unknown fields, fields that are given twice and numbers such as `1.0` for an integer are refused; `null` for an optional field \
counts as left out. Length is counted in characters.

";

const ANSWERS: &str = "\
## Answers

A success is `{ \"success\": true, \"data\": … }`; the fields of `data` are listed with each operation. A failure is \
`{ \"success\": false, \"error\": { \"code\", \"message\" }, \"data\": { \"requestId\", … } }`: branch on `error.code`, the message is \
for people. Of a failure's `data` only `requestId` is always there:

| field | type | meaning |
| - | - | - |
| requestId | string (uuid) | the request's id, as in the header `X-Request-Id`; tell it when you ask for help |
| retryAfter | integer | seconds until a retry may help, as in the header `Retry-After` |
| resetAt | string (date-time) | when the limit that was reached begins anew |
| field | string | the path of the offending field |
| max, min | number | the bound that it breaks |

Timestamps are ISO 8601 in UTC unless they say otherwise.

";

const LIMITS: &str = "\
## Limits

Every admitted call, also one that fails, takes a slot of each window that counts it; above a limit it is 429 with `Retry-After`. \
The headers are there where the limit is, on successes and failures alike; each `-Reset` is Unix seconds.

| limit | of | headers | above it |
| - | - | - | - |
| window of the credential | each API key, its account, or OAuth client and subject | `X-ApiKey-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Window` (seconds) | `RATE_LIMITED` |
| window of the operation | the same credential; named with the operation | the same, where it has the least left | `RATE_LIMITED` |
| calendar month (UTC) | each API key, or OAuth client and subject | `X-ApiKey-Monthly-Limit`, `-Remaining`, `-Reset` | `MONTHLY_QUOTA_EXCEEDED` |
| credits of a calendar month | the account of a self-service key; a failure gives them back | `X-ApiKey-Credit-Cost` (of this call), `-Limit`, `-Reset` | `API_CREDITS_EXCEEDED` |
| processor time in a minute | each caller, over all operations and jobs of one tag in /openapi.json | | `RATE_LIMITED` |
| window of an address | callers without a credential, on this service's own pages | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | `RATE_LIMITED` |

";

const REPEATS: &str = "\
## Calls that must not happen twice

With a self-service key, `Idempotency-Key` names a call: 1 to 80 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`, of your choice. \
Once such a call was admitted, another with the same value is 409 for 24 hours and costs nothing; the first answer is not sent \
again. `USAGE_CONCURRENCY_EXCEEDED` leaves the value free. Other credentials' calls ignore the header. Operations that start \
something take a `requestId` instead, from every caller: after a timeout send the same one again to learn whether it was \
taken.

";

/// The codes that any operation may answer, and those of the routes.
pub(crate) fn write_codes(text: &mut String) -> fmt::Result {
    writeln!(
        text,
        "## Error codes\n\nEvery operation may answer these; its own are listed with it.\n"
    )?;
    writeln!(text, "| status | code | when |\n| - | - | - |")?;
    let mut codes = COMMON.to_vec();
    codes.extend([Code::NotFound, Code::MethodNotAllowed]);
    write_rows(text, &mut codes)?;
    writeln!(
        text,
        "\nThese come of an operation whose limits name them:\n\n| status | code | when |\n| - | - | - |"
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
