//! The directory snapshot: facts about Vietnamese banks, one row each, in the order they are listed.
//!
//! SOURCE: names and transfer support are from the bank list of the MIT-licensed vietnam-qr-pay
//! project (commit 17a05d3, 2026-07-14); codes, short names and logo addresses are from the public
//! VietQR bank list (`GET https://api.vietqr.io/v2/banks`). A bank which only the latter lists is
//! taken as not supporting transfers. Names are in Unicode NFC.
//!
//! A renamed bank keeps its former names as aliases. `BVB` is BaoVietBank, as in VietQR: the other
//! source gives that code to Bản Việt, and the two must not be mixed when rows are added.
//!
//! This file is data: it knows nothing of how a bank is looked up or published.

use crate::directory::BankRecord;

/// When the content below last changed, not when anything was asked or built.
pub(crate) const UPDATED_AT: &str = "2026-07-14T07:24:47Z";

/// Every bank of the snapshot: bin, code, short name, name, transfer support, logo, aliases.
#[rustfmt::skip]
pub(crate) static BANKS: &[BankRecord] = &[
    bank("970415", "ICB", "VietinBank", "Ngân hàng TMCP Công thương Việt Nam", true, Some("https://cdn.vietqr.io/img/ICB.png"), &[]),
    bank("970436", "VCB", "Vietcombank", "Ngân hàng TMCP Ngoại Thương Việt Nam", true, Some("https://cdn.vietqr.io/img/VCB.png"), &[]),
    bank("970418", "BIDV", "BIDV", "Ngân hàng TMCP Đầu tư và Phát triển Việt Nam", true, Some("https://cdn.vietqr.io/img/BIDV.png"), &[]),
    bank("970405", "VBA", "Agribank", "Ngân hàng Nông nghiệp và Phát triển Nông thôn Việt Nam", true, Some("https://cdn.vietqr.io/img/VBA.png"), &[]),
    bank("970448", "OCB", "OCB", "Ngân hàng TMCP Phương Đông", true, Some("https://cdn.vietqr.io/img/OCB.png"), &[]),
    bank("970422", "MB", "MBBank", "Ngân hàng TMCP Quân đội", true, Some("https://cdn.vietqr.io/img/MB.png"), &[]),
    bank("970407", "TCB", "Techcombank", "Ngân hàng TMCP Kỹ thương Việt Nam", true, Some("https://cdn.vietqr.io/img/TCB.png"), &[]),
    bank("970416", "ACB", "ACB", "Ngân hàng TMCP Á Châu", true, Some("https://cdn.vietqr.io/img/ACB.png"), &[]),
    bank("970432", "VPB", "VPBank", "Ngân hàng TMCP Việt Nam Thịnh Vượng", true, Some("https://cdn.vietqr.io/img/VPB.png"), &[]),
    bank("970423", "TPB", "TPBank", "Ngân hàng TMCP Tiên Phong", true, Some("https://cdn.vietqr.io/img/TPB.png"), &[]),
    bank("970403", "STB", "Sacombank", "Ngân hàng TMCP Sài Gòn Thương Tín", true, Some("https://cdn.vietqr.io/img/STB.png"), &[]),
    bank("970437", "HDB", "HDBank", "Ngân hàng TMCP Phát triển TP. Hồ Chí Minh", true, Some("https://cdn.vietqr.io/img/HDB.png"), &[]),
    bank("970454", "VCCB", "BVBank", "Ngân hàng TMCP Bản Việt", true, Some("https://cdn.vietqr.io/img/VCCB.png"), &["VietCapitalBank"]),
    bank("970429", "SCB", "SCB", "Ngân hàng TMCP Sài Gòn", true, Some("https://cdn.vietqr.io/img/SCB.png"), &[]),
    bank("970441", "VIB", "VIB", "Ngân hàng TMCP Quốc tế Việt Nam", true, Some("https://cdn.vietqr.io/img/VIB.png"), &[]),
    bank("970443", "SHB", "SHB", "Ngân hàng TMCP Sài Gòn - Hà Nội", true, Some("https://cdn.vietqr.io/img/SHB.png"), &[]),
    bank("970431", "EIB", "Eximbank", "Ngân hàng TMCP Xuất Nhập khẩu Việt Nam", true, Some("https://cdn.vietqr.io/img/EIB.png"), &[]),
    bank("970426", "MSB", "MSB", "Ngân hàng TMCP Hàng Hải", true, Some("https://cdn.vietqr.io/img/MSB.png"), &[]),
    bank("546034", "CAKE", "CAKE", "Ngân hàng số CAKE by VPBank - Ngân hàng TMCP Việt Nam Thịnh Vượng", true, Some("https://cdn.vietqr.io/img/CAKE.png"), &[]),
    bank("546035", "Ubank", "Ubank", "Ngân hàng số Ubank by VPBank - Ngân hàng TMCP Việt Nam Thịnh Vượng", true, Some("https://cdn.vietqr.io/img/UBANK.png"), &[]),
    bank("963388", "TIMO", "Timo", "Ngân hàng số Timo by Bản Việt Bank", true, Some("https://cdn.vietqr.io/img/TIMO.png"), &[]),
    bank("971005", "VTLMONEY", "ViettelMoney", "Tổng Công ty Dịch vụ số Viettel - Chi nhánh tập đoàn công nghiệp viễn thông Quân Đội", false, Some("https://cdn.vietqr.io/img/VIETTELMONEY.png"), &[]),
    bank("971011", "VNPTMONEY", "VNPTMoney", "VNPT Money", false, Some("https://cdn.vietqr.io/img/VNPTMONEY.png"), &[]),
    bank("970400", "SGICB", "SaigonBank", "Ngân hàng TMCP Sài Gòn Công Thương", true, Some("https://cdn.vietqr.io/img/SGICB.png"), &[]),
    bank("970409", "BAB", "BacABank", "Ngân hàng TMCP Bắc Á", true, Some("https://cdn.vietqr.io/img/BAB.png"), &[]),
    bank("970412", "PVCB", "PVcomBank", "Ngân hàng TMCP Đại Chúng Việt Nam", true, Some("https://cdn.vietqr.io/img/PVCB.png"), &[]),
    bank("970414", "MBV", "MBV", "Ngân hàng TNHH MTV Việt Nam Hiện Đại", true, Some("https://cdn.vietqr.io/img/OCEANBANK.png"), &["Oceanbank"]),
    bank("970419", "NCB", "NCB", "Ngân hàng TMCP Quốc Dân", true, Some("https://cdn.vietqr.io/img/NCB.png"), &[]),
    bank("970424", "SHBVN", "ShinhanBank", "Ngân hàng TNHH MTV Shinhan Việt Nam", true, Some("https://cdn.vietqr.io/img/SHBVN.png"), &[]),
    bank("970425", "ABB", "ABBANK", "Ngân hàng TMCP An Bình", true, Some("https://cdn.vietqr.io/img/ABB.png"), &[]),
    bank("970427", "VAB", "VietABank", "Ngân hàng TMCP Việt Á", true, Some("https://cdn.vietqr.io/img/VAB.png"), &[]),
    bank("970428", "NAB", "NamABank", "Ngân hàng TMCP Nam Á", true, Some("https://cdn.vietqr.io/img/NAB.png"), &[]),
    bank("970430", "PGB", "PGBank", "Ngân hàng TMCP Xăng dầu Petrolimex", true, Some("https://cdn.vietqr.io/img/PGB.png"), &[]),
    bank("970433", "VIETBANK", "VietBank", "Ngân hàng TMCP Việt Nam Thương Tín", true, Some("https://cdn.vietqr.io/img/VIETBANK.png"), &[]),
    bank("970438", "BVB", "BaoVietBank", "Ngân hàng TMCP Bảo Việt", true, Some("https://cdn.vietqr.io/img/BVB.png"), &[]),
    bank("970440", "SEAB", "SeABank", "Ngân hàng TMCP Đông Nam Á", true, Some("https://cdn.vietqr.io/img/SEAB.png"), &[]),
    bank("970446", "COOPBANK", "COOPBANK", "Ngân hàng Hợp tác xã Việt Nam", true, Some("https://cdn.vietqr.io/img/COOPBANK.png"), &[]),
    bank("970449", "LPB", "LPBank", "Ngân hàng TMCP Lộc Phát Việt Nam", true, Some("https://cdn.vietqr.io/img/LPB.png"), &[]),
    bank("970452", "KLB", "KienLongBank", "Ngân hàng TMCP Kiên Long", true, Some("https://cdn.vietqr.io/img/KLB.png"), &[]),
    bank("668888", "KBank", "KBank", "Ngân hàng Đại chúng TNHH KASIKORNBANK - CN TP. Hồ Chí Minh", true, Some("https://cdn.vietqr.io/img/KBANK.png"), &[]),
    bank("970462", "KBHN", "KookminHN", "Ngân hàng Kookmin - Chi nhánh Hà Nội", false, Some("https://cdn.vietqr.io/img/KBHN.png"), &[]),
    bank("970466", "KEBHANAHCM", "KEBHanaHCM", "Ngân hàng KEB Hana – Chi nhánh Thành phố Hồ Chí Minh", false, Some("https://cdn.vietqr.io/img/KEBHANAHCM.png"), &[]),
    bank("970467", "KEBHANAHN", "KEBHANAHN", "Ngân hàng KEB Hana – Chi nhánh Hà Nội", false, Some("https://cdn.vietqr.io/img/KEBHANAHN.png"), &[]),
    bank("977777", "MAFC", "MAFC", "Công ty Tài chính TNHH MTV Mirae Asset (Việt Nam)", false, Some("https://cdn.vietqr.io/img/MAFC.png"), &[]),
    bank("533948", "CITIBANK", "Citibank", "Ngân hàng Citibank, N.A. - Chi nhánh Hà Nội", false, Some("https://cdn.vietqr.io/img/CITIBANK.png"), &[]),
    bank("970463", "KBHCM", "KookminHCM", "Ngân hàng Kookmin - Chi nhánh TP. Hồ Chí Minh", false, Some("https://cdn.vietqr.io/img/KBHCM.png"), &[]),
    bank("999888", "VBSP", "VBSP", "Ngân hàng Chính sách Xã hội", false, Some("https://cdn.vietqr.io/img/VBSP.png"), &[]),
    bank("970457", "WVN", "Woori", "Ngân hàng TNHH MTV Woori Việt Nam", false, Some("https://cdn.vietqr.io/img/WVN.png"), &[]),
    bank("970421", "VRB", "VRB", "Ngân hàng Liên doanh Việt - Nga", false, Some("https://cdn.vietqr.io/img/VRB.png"), &[]),
    bank("970458", "UOB", "UnitedOverseas", "Ngân hàng United Overseas Bank Việt Nam", false, Some("https://cdn.vietqr.io/img/UOB.png"), &[]),
    bank("970410", "SCVN", "StandardChartered", "Ngân hàng TNHH MTV Standard Chartered Bank Việt Nam", false, Some("https://cdn.vietqr.io/img/SCVN.png"), &[]),
    bank("970439", "PBVN", "PublicBank", "Ngân hàng TNHH MTV Public Việt Nam", false, Some("https://cdn.vietqr.io/img/PBVN.png"), &[]),
    bank("801011", "NHB HN", "Nonghyup", "Ngân hàng Nonghyup - Chi nhánh Hà Nội", false, Some("https://cdn.vietqr.io/img/NHB.png"), &[]),
    bank("970434", "IVB", "IndovinaBank", "Ngân hàng TNHH Indovina", false, Some("https://cdn.vietqr.io/img/IVB.png"), &[]),
    bank("970456", "IBK - HCM", "IBKHCM", "Ngân hàng Công nghiệp Hàn Quốc - Chi nhánh TP. Hồ Chí Minh", false, Some("https://cdn.vietqr.io/img/IBK.png"), &[]),
    bank("970455", "IBK - HN", "IBKHN", "Ngân hàng Công nghiệp Hàn Quốc - Chi nhánh Hà Nội", false, Some("https://cdn.vietqr.io/img/IBK.png"), &[]),
    bank("458761", "HSBC", "HSBC", "Ngân hàng TNHH MTV HSBC (Việt Nam)", false, Some("https://cdn.vietqr.io/img/HSBC.png"), &[]),
    bank("970442", "HLBVN", "HongLeong", "Ngân hàng TNHH MTV Hong Leong Việt Nam", false, Some("https://cdn.vietqr.io/img/HLBVN.png"), &[]),
    bank("970408", "GPB", "GPBank", "Ngân hàng Thương mại TNHH MTV Dầu Khí Toàn Cầu", false, Some("https://cdn.vietqr.io/img/GPB.png"), &[]),
    bank("970406", "VIKKI", "VikkiBank", "Ngân hàng TNHH MTV Số Vikki", true, Some("https://cdn.vietqr.io/img/DOB.png"), &["DOB", "DongABank"]),
    bank("796500", "DBS", "DBSBank", "NH TNHH MTV Phát triển Singapore - Chi nhánh TP. Hồ Chí Minh", false, Some("https://cdn.vietqr.io/img/DBS.png"), &[]),
    bank("422589", "CIMB", "CIMB", "Ngân hàng TNHH MTV CIMB Việt Nam", false, Some("https://cdn.vietqr.io/img/CIMB.png"), &[]),
    bank("970444", "CBB", "CBBank", "Ngân hàng Thương mại TNHH MTV Xây dựng Việt Nam", false, Some("https://cdn.vietqr.io/img/CBB.png"), &[]),
    bank("963369", "LIOBANK", "Liobank", "Ngân hàng số Liobank - Ngân hàng TMCP Phương Đông", true, None, &[]),
    bank("971025", "MOMO", "MoMo", "CTCP Dịch Vụ Di Động Trực Tuyến", true, None, &[]),
];

/// A row on one line; a struct literal would take nine.
const fn bank(
    bin: &'static str,
    code: &'static str,
    short_name: &'static str,
    name: &'static str,
    transfer_supported: bool,
    logo_url: Option<&'static str>,
    aliases: &'static [&'static str],
) -> BankRecord {
    BankRecord {
        bin,
        code,
        short_name,
        name,
        transfer_supported,
        logo_url,
        aliases,
    }
}
