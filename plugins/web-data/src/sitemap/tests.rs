//! Sitemaps as sites have them, broken and hostile ones among them.

use std::io::Write;

use arbtest::arbitrary::Unstructured;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const XMLNS: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("into memory");
    encoder.finish().expect("into memory")
}

fn pages(body: &[u8]) -> Vec<String> {
    read(body, None)
        .pages
        .into_iter()
        .map(|listed| listed.url)
        .collect()
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    assert_eq!(
        pages(body.as_bytes()),
        expected,
        "{}",
        &body[..body.len().min(300)]
    );
}

#[test]
fn a_urlset_lists_pages() {
    check(
        &format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<?xml-stylesheet href='x.xsl'?><urlset xmlns='{XMLNS}'>
             <!-- <url><loc>https://a.example/commented</loc></url> -->
             <url>\n<loc>\n https://a.example/1?b=2&amp;c=3 \n</loc><lastmod>2026-01-01</lastmod></url>
             <url><loc><![CDATA[https://a.example/2?b&c]]></loc></url><url><loc>https://a.example/&#252;</loc></url>
             <url><lastmod>2026</lastmod></url></urlset>"
        ),
        &["https://a.example/1?b=2&c=3", "https://a.example/2?b&c", "https://a.example/ü"],
    );
    check(
        "<sm:urlset><sm:url><sm:loc>https://a.example/1</sm:loc></sm:url></sm:urlset>",
        &["https://a.example/1"],
    );
}

#[test]
fn pictures_films_and_other_languages_are_not_pages() {
    let body = "<urlset><url><image:image><image:loc>https://a.example/p.png</image:loc><image:title>P</image:title>
        </image:image><video:video><video:title>V</video:title><video:description>v</video:description></video:video>
        <xhtml:link rel='alternate' hreflang='de' href='https://a.example/de'/><loc>https://a.example/1</loc>
        <news:news><news:publication><news:name>N</news:name></news:publication><news:title>T &lt; U</news:title>
        </news:news></url></urlset>";
    let listed = Listed {
        url: "https://a.example/1".to_owned(),
        title: Some("T < U".to_owned()),
        description: None,
    };
    assert_eq!(read(body.as_bytes(), None).pages, [listed]);
}

#[test]
fn an_index_lists_sitemaps() {
    let body =
        "<sitemapindex><sitemap><loc>https://a.example/1.xml</loc><lastmod>x</lastmod></sitemap>
        <sitemap><loc>/2.xml.gz</loc></sitemap></sitemapindex>";
    let read = read(body.as_bytes(), Some("application/xml"));
    assert_eq!(
        (read.sitemaps, read.pages),
        (
            vec!["https://a.example/1.xml".to_owned(), "/2.xml.gz".to_owned()],
            vec![]
        )
    );
}

#[test]
fn a_feed_lists_its_entries_with_their_titles() {
    let rss = "<rss><channel><title>Site</title><link>https://a.example/</link><atom:link href='/feed' rel='self'/>
        <item><title>One &amp; two</title><link>https://a.example/1</link><description>&lt;p&gt;First&lt;/p&gt;</description>
        <content:encoded>long</content:encoded></item></channel></rss>";
    let atom = "<feed><title>Site</title><link href='https://a.example/'/><entry><title>One &amp; two</title>
        <link rel='replies' href='/r'/><link rel='alternate' href='https://a.example/1'/><link href='/other'/>
        <summary>&lt;p&gt;First&lt;/p&gt;</summary></entry></feed>";
    for body in [rss, atom] {
        let listed = Listed {
            url: "https://a.example/1".to_owned(),
            title: Some("One & two".to_owned()),
            description: Some("<p>First</p>".to_owned()),
        };
        assert_eq!(read(body.as_bytes(), None).pages, [listed], "{body}");
    }
}

#[test]
fn plain_text_lists_a_page_a_line() {
    let text =
        "\u{feff}https://a.example/1\r\n# no page\n\n  https://a.example/2\nftp://a.example/3\n";
    check(text, &["https://a.example/1", "https://a.example/2"]);
    check("", &[]);
}

#[test]
fn what_is_packed_is_unpacked() {
    let body = b"<urlset><url><loc>https://a.example/1</loc></url></urlset>";
    assert_eq!(pages(&packed(body)), ["https://a.example/1"]);
    assert_eq!(pages(&packed(&packed(body))), ["https://a.example/1"]);
    assert_eq!(pages(&packed(&packed(&packed(body)))), [""; 0]);
    let members = [packed(&body[..20]), packed(&body[20..])].concat();
    assert_eq!(pages(&members), ["https://a.example/1"]);
    let text: String = (0..2000)
        .map(|n| format!("https://a.example/{}\n", n * 7919))
        .collect();
    let whole = packed(text.as_bytes());
    let half = pages(&whole[..whole.len() / 2]).len();
    assert!((200..1900).contains(&half), "{half}");
    assert_eq!(
        read(b"\x1f\x8b\x08 no such thing", None),
        Sitemap::default()
    );
}

#[test]
fn character_sets_are_heard() {
    let body =
        b"<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>https://a.example/\xfc</loc></url></urlset>";
    assert_eq!(pages(body), ["https://a.example/ü"]);
    let wide: Vec<u8> = "\u{feff}<urlset><url><loc>https://a.example/1</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(pages(&wide), ["https://a.example/1"]);
}

#[test]
fn what_is_broken_is_read_as_far_as_it_goes() {
    check(
        "<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.example/2",
        &["https://a.example/1"],
    );
    check(
        "<urlset><url><loc>https://a.example/1?a=1&b=2</loc></url>",
        &["https://a.example/1?a=1&b=2"],
    );
    check(
        "<urlset><url><loc>https://a.example/1</loc><url><loc>https://a.example/2</loc>",
        &["https://a.example/1", "https://a.example/2"],
    );
    check(
        "</x></y><urlset><url><loc>https://a.example/1</loc></wrong></url>",
        &["https://a.example/1"],
    );
    check(
        "<!DOCTYPE html><html><head><link href='/a'><title>No such page</title><body><a href='/b'>x</a>",
        &[],
    );
    check("{\"urls\": []}", &[]);
}

#[test]
fn entities_of_a_document_are_not_expanded() {
    let body =
        "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c SYSTEM 'file:///etc/passwd'>]>
        <urlset><url><loc>https://a.example/&b;&c;&#0;&#x110000;1</loc></url></urlset>";
    check(body, &["https://a.example/1"]);
}

#[test]
fn a_sitemap_is_read_within_bounds() {
    let entry = |n: usize| format!("<url><loc>https://a.example/{n}</loc></url>");
    let many: String = (0..PAGES_MAX + 10).map(entry).collect();
    assert_eq!(pages(many.as_bytes()).len(), PAGES_MAX);
    let sitemaps: String = (0..2000)
        .map(|n| format!("<sitemap><loc>/{n}</loc></sitemap>"))
        .collect();
    assert_eq!(read(sitemaps.as_bytes(), None).sitemaps.len(), SITEMAPS_MAX);
    let long = format!(
        "<url><loc>https://a.example/</loc><title>{}</title></url>",
        "ü".repeat(TEXT_BYTES_MAX)
    );
    let title = read(long.as_bytes(), None)
        .pages
        .remove(0)
        .title
        .expect("a title");
    assert!(title.len() <= TEXT_BYTES_MAX && title.len() > TEXT_BYTES_MAX - 4);
    let bomb = packed(&packed(&vec![b' '; 2 * BYTES_MAX as usize]));
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    assert_eq!(read(&bomb, None).bytes, BYTES_MAX as usize);
}

#[test]
fn deep_and_repeated_shapes_are_read() {
    for piece in [
        "<url>",
        "<a>",
        "</a>",
        "<url><loc>",
        "<!--",
        "<![CDATA[",
        "<!DOCTYPE [",
        "&",
        "&#",
        "<a b='",
        "<?",
        "]]>",
    ] {
        read(piece.repeat(200_000 / piece.len()).as_bytes(), None);
    }
    let attributes: String = (0..50_000).map(|n| format!(" a{n}='1'")).collect();
    check(
        &format!("<url><link{attributes} href='/x'/></url>"),
        &["/x"],
    );
}

#[test]
fn mutated_sitemaps_are_read() {
    let body = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><urlset><url><loc>https://a.example/1?a&amp;b</loc>\
        <title><![CDATA[x]]></title></url><sitemap><loc>/2</loc></sitemap><entry><link href='/3' rel='alternate'/></entry>";
    arbtest::arbtest(|u: &mut Unstructured<'_>| {
        let mut bytes = body.as_bytes().to_vec();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.int_in_range(0..=bytes.len() - 1)?;
            match u.int_in_range(0..=2)? {
                0 => bytes[at] = u.arbitrary()?,
                1 => drop(bytes.drain(at..(at + 9).min(bytes.len()))),
                _ => drop(
                    bytes.splice(
                        at..at,
                        u.choose(&["<", ">", "&", "]]>", "<!", "\0", "<url>"])?
                            .bytes(),
                    ),
                ),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let (whole, unpacked) = (read(&bytes, None), read(&packed(&bytes), None));
        assert_eq!(whole, unpacked);
        Ok(())
    })
    .budget_ms(1500);
}
