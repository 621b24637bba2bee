//! Vietnamese bank directory and bank-transfer QR codes (docs/api.md, "Bank QR").
//!
//! This file is the index: the two operations, their types and their rows. The work is in pure modules: `directory`
//! (with its table, `banks`, and its upstream's list, `upstream`), `memo`, `payload`, `image`; `refresh` alone reaches out,
//! for the list. Payment details never leave the plugin.

mod banks;
mod directory;
mod image;
mod memo;
mod payload;
#[cfg(target_family = "wasm")]
mod refresh;
#[cfg(any(target_family = "wasm", test))]
mod upstream;

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};

/// The bank is not in the directory.
const UNKNOWN_BANK: ErrorCode = ErrorCode::validation_error("`bank` is not in the bank directory.");

/// The plugin, for [`switchbay_sdk::export!`] and for the benchmarks' native yardstick.
pub fn plugin() -> Plugin {
    plugin!("Vietnamese bank directory and bank-transfer QR codes")
        .welcomes("http:GET https://api.vietqr.io/v2/banks", "to refresh the bank directory once a day")
        .welcomes("state:1MiB", "to store the refreshed directory")
        .welcomes("config", "to read the upstream and the intervals that the operator sets")
        .welcomes("logging", "to log why a refresh failed")
        .operation(
            Operation::new("banks", banks)
                .title("List banks for bank QR")
                .description(
                    "Lists the Vietnamese banks that a bank-transfer QR code can pay to, with \
                     six-digit bin, code, short name, full name and logo. Takes no arguments and \
                     no payment details. `updatedAt` identifies the directory snapshot, not the \
                     time of the request.",
                )
                .rest(
                    Rest::get("/api/v1/tools/bank-qr/banks", "bank-qr:banks")
                        .cache_control("private, max-age=3600, stale-while-revalidate=86400")
                        .etag(),
                )
                .tool(Tool::new("list_bank_qr_banks", "bank-qr:banks").read_only())
                .example("The whole directory", "{}"),
        )
        .operation(
            Operation::new("generate", generate)
                .title("Generate a bank-transfer QR")
                .description(
                    "Builds the EMV payload of a Vietnamese bank transfer and its QR code as a \
                     self-contained SVG data URI. If `amount` is omitted, the payer enters it. The \
                     memo is folded to at most 25 ASCII characters; `transfer.memo` shows what was \
                     encoded. Does not check the account, encode the account holder's name, move \
                     money or confirm a transfer.",
                )
                .rest(
                    Rest::post("/api/v1/tools/bank-qr", "bank-qr:generate")
                        .body_bytes_max(4096)
                        .cache_control("no-store"),
                )
                .tool(Tool::new("generate_bank_qr", "bank-qr:generate").read_only())
                .error(UNKNOWN_BANK)
                .example(
                    "A transfer of 150,000 VND with a memo",
                    r#"{ "bank": "VCB", "accountNumber": "0011001234567", "amount": 150000, "memo": "Tiền cà phê" }"#,
                )
                .example("An open amount", r#"{ "bank": "970418", "accountNumber": "31410001234567" }"#),
        )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Directory {
    /// The banks, each once.
    banks: Vec<DirectoryBank>,
    /// The number of banks.
    count: usize,
    /// Identifies the directory snapshot; changes only when its content does.
    #[schemars(extend("format" = "date-time"))]
    updated_at: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DirectoryBank {
    #[serde(flatten)]
    bank: Bank,
    /// The bank's logo.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    logo_url: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Bank {
    /// The six-digit bank identification number.
    #[schemars(regex(pattern = r"^[0-9]{6}$"))]
    bin: &'static str,
    /// The bank's code.
    code: &'static str,
    /// The bank's short name.
    short_name: &'static str,
    /// The bank's full name.
    name: &'static str,
    /// Whether the bank is known to accept QR transfers. Compatibility metadata only.
    transfer_supported: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Generate {
    /// The beneficiary's bank: its six-digit bin, code or short name from the directory, case-insensitive.
    #[schemars(length(min = 2, max = 64))]
    bank: String,
    /// The beneficiary's account number: 6 to 19 digits, as a string to keep leading zeroes.
    #[schemars(title = "string of 6 to 19 digits", regex(pattern = r"^[0-9]{6,19}$"))]
    account_number: String,
    /// The amount in VND, a whole number. If omitted, the payer enters it.
    #[schemars(range(min = 1, max = 9_999_999_999_999_u64))]
    amount: Option<u64>,
    /// The transfer memo. It is folded to ASCII and truncated to 25 characters.
    #[schemars(length(max = 200))]
    memo: Option<String>,
    /// Width and height of the SVG image in pixels.
    #[serde(default = "switchbay_sdk::number::<320>")]
    #[schemars(range(min = 160, max = 1024))]
    image_size: u32,
}

#[derive(Serialize, JsonSchema)]
struct Generated {
    /// The beneficiary's bank.
    bank: Bank,
    /// The values that the QR code encodes.
    transfer: Transfer,
    /// The QR code.
    qr: Qr,
    /// Notices about this successful result. Branch on `code`.
    warnings: Vec<Warning>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Transfer {
    /// The account number as encoded.
    account_number: String,
    /// The amount as encoded, or null if the payer enters it.
    amount: Option<u64>,
    /// The memo as encoded, or null if the request had none.
    memo: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Qr {
    /// `dynamic` if the QR code includes an amount, otherwise `static`.
    #[serde(rename = "type")]
    kind: QrType,
    /// The complete EMV payload.
    payload: String,
    /// The QR code as an image.
    image: Image,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum QrType {
    Static,
    Dynamic,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Image {
    /// Always `svg`.
    format: &'static str,
    /// Always `image/svg+xml`.
    mime_type: &'static str,
    /// A self-contained SVG data URI for an img element.
    #[schemars(extend("format" = "uri"))]
    data_url: String,
    /// Width and height in pixels.
    size: u32,
}

#[derive(Serialize, JsonSchema)]
struct Warning {
    /// The warning's code, to branch on.
    code: WarningCode,
    /// The warning in words.
    message: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum WarningCode {
    MemoNormalized,
    LimitedTransferSupport,
}

/// The directory as it is now.
#[cfg(target_family = "wasm")]
use refresh::current as directory;

/// Natively there is no host to ask.
#[cfg(not(target_family = "wasm"))]
async fn directory() -> &'static directory::BankList {
    &directory::SNAPSHOT
}

async fn banks(_call: Call, _input: NoInput) -> Result<Reply<Directory>, Failure> {
    let directory = directory().await;
    let published = |bank: &directory::BankRecord| DirectoryBank {
        bank: published(bank),
        logo_url: bank.logo_url,
    };
    let banks: Vec<DirectoryBank> = directory.banks.iter().map(published).collect();
    Ok(Reply::ok(Directory {
        count: banks.len(),
        banks,
        updated_at: directory.updated_at,
    }))
}

async fn generate(_call: Call, input: Generate) -> Result<Reply<Generated>, Failure> {
    let Some(bank) = directory().await.find(&input.bank) else {
        return Err(UNKNOWN_BANK
            .failure(
                "`bank` must be the bin, code or short name of a bank in the directory; this value \
             matches none",
            )
            .field("bank"));
    };
    let memo = input.memo.as_deref().map(memo::fold);
    let payload = payload::encode(&payload::PayloadFields {
        bin: bank.bin,
        account_number: &input.account_number,
        amount: input.amount,
        memo: memo.as_deref(),
    });
    let size = input.image_size;
    let svg = image::svg(&payload, size)
        .expect("the longest payload, 150 bytes, fits a QR code of 49 modules");
    let mut warnings = Vec::new();
    if memo != input.memo {
        warnings.push(Warning {
            code: WarningCode::MemoNormalized,
            message: "The memo was normalized; `transfer.memo` shows what was encoded",
        });
    }
    if !bank.transfer_supported {
        warnings.push(Warning {
            code: WarningCode::LimitedTransferSupport,
            message: "This bank is not known to accept QR transfers; test the QR code before relying on it",
        });
    }
    Ok(Reply::ok(Generated {
        bank: published(bank),
        transfer: Transfer {
            account_number: input.account_number,
            amount: input.amount,
            memo,
        },
        qr: Qr {
            kind: input.amount.map_or(QrType::Static, |_| QrType::Dynamic),
            payload,
            image: Image {
                format: "svg",
                mime_type: "image/svg+xml",
                data_url: image::data_uri(&svg),
                size,
            },
        },
        warnings,
    }))
}

fn published(bank: &directory::BankRecord) -> Bank {
    Bank {
        bin: bank.bin,
        code: bank.code,
        short_name: bank.short_name,
        name: bank.name,
        transfer_supported: bank.transfer_supported,
    }
}
