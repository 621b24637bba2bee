//! The public resolvers of the outside world, whose answers are chosen by the first label of the name.
//!
//! They have a thread of their own, so that tests share them.

use std::sync::{Arc, OnceLock, mpsc};

use tokio::sync::Barrier;

use super::message::{Message, cname, record};
use crate::lab::Reply;
use crate::lab::dns::{Asked, Scripted, configuration};

const PROVIDERS: [&str; 2] = ["cloudflare", "google"];

const A: u16 = 1;
const CNAME: u16 = 5;
const TXT: u16 = 16;

/// The running resolvers.
pub(crate) struct Resolver {
    providers: Vec<(&'static str, Scripted)>,
}

impl Resolver {
    /// The ones that serve for as long as the process lives.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<&'static Resolver> = OnceLock::new();
        SHARED.get_or_init(|| {
            let (started, resolver) = mpsc::channel();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(async {
                    let resolver: &'static Resolver = Box::leak(Box::new(Self::start().await));
                    started.send(resolver).expect("the test waits");
                    std::future::pending::<()>().await;
                });
            });
            resolver.recv().expect("it starts")
        })
    }

    async fn start() -> Self {
        // Opens once 16 questions stand before it.
        let together = Arc::new(Barrier::new(16));
        let mut providers = Vec::new();
        for provider in PROVIDERS {
            let together = Arc::clone(&together);
            let script = move |asked: Asked| {
                let together = Arc::clone(&together);
                async move { said(&together, provider, &asked).await }
            };
            providers.push((provider, Scripted::start(script).await));
        }
        Self { providers }
    }

    /// The part of a configuration that leads both providers here. It ends within the table `[dns.resolvers]`.
    pub(crate) fn configuration(&self) -> String {
        let endpoints: Vec<_> = self
            .providers
            .iter()
            .map(|(name, one)| (*name, &one.endpoint))
            .collect();
        configuration(&endpoints)
    }

    /// How many questions have come for a name.
    pub(super) fn asked(&self, name: &str) -> usize {
        let of = |one: &Scripted| {
            one.asked()
                .iter()
                .filter(|asked| asked.name == name)
                .count()
        };
        self.providers.iter().map(|(_, one)| of(one)).sum()
    }
}

/// What is answered to a question.
async fn said(together: &Barrier, provider: &str, asked: &Asked) -> Reply {
    let code = asked.record_type;
    // After the header: the name, its end, type and class.
    let question = asked.message[12..12 + asked.name.len() + 6].to_vec();
    let message = |head: u16| Message::new(head, &question).authority(soa(3600));
    let plain = || match code {
        A => message(0x8180).answer(record(&asked.name, A, 300, &[192, 0, 2, 1])),
        _ => message(0x8180),
    };
    let (name, is_text) = (asked.name.as_str(), code == TXT);
    let message = match name.split(['.', '-']).next().unwrap_or_default() {
        "nxdomain" => message(0x8183),
        "empty" => message(0x8180),
        "refused" => Message::new(0x8185, &question),
        "servfail" => Message::new(0x8182, &question),
        "strange" => Message::new(0x818B, &question),
        // A resolver follows the alias for all types but that of the alias itself.
        "dangling" if code == CNAME => message(0x8180).answer(cname(name, 60, "nowhere.test")),
        "dangling" => message(0x8183).answer(cname(name, 60, "nowhere.test")),
        "gone" => message(0x8183).answer(cname(name, 60, "nowhere.test")),
        "loop" => message(0x8180)
            .answer(cname(name, 60, "loop2.test"))
            .answer(cname("loop2.test", 60, name)),
        "silent" => std::future::pending().await,
        "quiet" if is_text => std::future::pending().await,
        "late" if is_text => std::future::pending().await,
        "late" | "status" => return Reply::bare(500, "not now"),
        "garbage" => return Reply::dns(b"\0\0\x81\x80garbage".to_vec()),
        "torn" if is_text => return Reply::dns(message(0x8180).cut(3)),
        "huge" if is_text => pointed(&question),
        "partly" => match code {
            A => plain(),
            TXT => Message::new(0x8182, &question),
            _ => Message::new(0x8185, &question),
        },
        "together" => {
            together.wait().await;
            plain()
        }
        // The same records for all types, each time to live by the type.
        "same" => Message::new(0x81A0, &question)
            .answer(cname(
                &name.to_uppercase(),
                u32::from(code) + 10,
                "Target.test",
            ))
            .answer(record(
                "target.test",
                A,
                300 - u32::from(code),
                &[192, 0, 2, 7],
            ))
            .authority(soa(1000 + u32::from(code))),
        "whose" if is_text => {
            let length = u8::try_from(provider.len()).expect("a string");
            message(0x8180).answer(record(
                name,
                TXT,
                5,
                &[&[length], provider.as_bytes()].concat(),
            ))
        }
        _ => plain(),
    };
    Reply::dns(message.bytes())
}

fn soa(ttl: u32) -> Vec<u8> {
    record(
        "test",
        6,
        ttl,
        b"\x02ns\x04test\0\x04host\x04test\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05",
    )
}

/// An answer that becomes megabytes: records of a few bytes, which point to one long name.
fn pointed(question: &[u8]) -> Message {
    let long = (0..3).fold(Vec::new(), |name, _| {
        [name, vec![60], vec![0xFF; 60]].concat()
    });
    let first = [&long, &b"\0\0\x10\0\x01\0\0\0\x01\0\x01\0"[..]].concat();
    let at = u16::try_from(12 + question.len()).expect("the question is short") | 0xC000;
    let next = [&at.to_be_bytes()[..], b"\0\x10\0\x01\0\0\0\x01\0\x01\0"].concat();
    (0..2000).fold(
        Message::new(0x8180, question).answer(first),
        |message, _| message.answer(next.clone()),
    )
}
