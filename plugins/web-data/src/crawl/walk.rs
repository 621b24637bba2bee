//! The run of a crawl: asks for the pages that are next, two at a time, and emits what they come to.
//!
//! Whatever is decided is the frontier's to decide, in the order of its pages; this alone waits. Each page is emitted with the
//! frontier behind it, both or neither, so a run that is taken up again asks for no page that was emitted.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use futures::future::{LocalBoxFuture, MaybeDone, maybe_done};
use switchbay_sdk::http::{Denial, Error, Response};
use switchbay_sdk::jobs::{self, Run, RunError, WorkError};
use switchbay_sdk::{Call, Failure, Reply};
use url::Url;

use super::frontier::{Frontier, NextPage, PendingPage};
use super::pace::{Pace, RETRY_AFTER_MAX};
use super::rules::{Rules, Verdict};
use super::unreached::{self, unreached};
use super::visit::{PAGE_BYTES_MAX, VisitAnswer, visit};
use super::{NOT_GRANTED, Start, unavailable};
use crate::page::{self, cut};
use crate::robots::Unreachable;
use crate::{Document, Format, outline, scrape, site};

/// Bytes of a document's JSON form.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// What came of asking for a page, or why nobody asked.
#[derive(Debug)]
pub(super) enum PageOutcome {
    Answered(VisitAnswer),
    Unanswered(Error),
    /// robots.txt forbids it.
    Forbidden,
    /// Nobody knows what its site asks of robots.
    Unruled(Unreachable),
}

/// A crawl under way.
struct CrawlWalk {
    run: Run<Frontier>,
    format: Format,
    frontier: Frontier,
    rules: Rules,
    pace: Pace,
    /// Requests by the numbers of their pages: at most two.
    asking: Vec<(u32, MaybeDone<LocalBoxFuture<'static, PageOutcome>>)>,
}

/// Crawls from where the job has come to.
pub(super) async fn run(call: Call, start: Start) -> Result<Reply<()>, Failure> {
    let mut run: Run<Frontier> = Run::of(&call).map_err(|error| match error {
        RunError::NoRun => unavailable("this call is not a run of a job"),
        RunError::Checkpoint(_) => unavailable("the crawl cannot be resumed"),
    })?;
    let frontier = match run.checkpoint.take() {
        Some(frontier) => frontier.resumed(),
        None => {
            let url =
                Url::parse(&start.url).map_err(|_| unavailable("the crawl has no first page"))?;
            Frontier::new(url, start.limit, start.max_depth)
        }
    };
    let mut walk = CrawlWalk {
        run,
        format: start.format,
        frontier,
        rules: Rules::default(),
        pace: Pace::default(),
        asking: Vec::new(),
    };
    while let Some(page) = walk.next().await? {
        let asked = walk.answer(page.number).await;
        let (found, document) = walk.read(&page, asked)?;
        walk.settle(found, document).await?;
    }
    Ok(Reply::ok(()))
}

impl CrawlWalk {
    /// The next page, asked for with what is due behind it. `None` when the crawl is over.
    async fn next(&mut self) -> Result<Option<PendingPage>, Failure> {
        let Some(next) = self.frontier.next().cloned() else {
            return Ok(None);
        };
        let due: Vec<PendingPage> = self.frontier.due().cloned().collect();
        for page in &due {
            let is_ahead = page.number != next.number;
            if self.is_asked(page.number) || (is_ahead && !self.may_ask_ahead(&page.url)) {
                continue;
            }
            let asked = match self
                .rules
                .judge(&page.url, &mut self.pace, &self.run.id)
                .await?
            {
                Verdict::Allowed => {
                    self.pace.wait(&self.run.id).await?;
                    let url = page.url.clone();
                    let asked = async {
                        visit(url)
                            .await
                            .map_or_else(PageOutcome::Unanswered, PageOutcome::Answered)
                    };
                    maybe_done(Box::pin(asked) as LocalBoxFuture<'static, PageOutcome>)
                }
                Verdict::Forbidden => MaybeDone::Done(PageOutcome::Forbidden),
                Verdict::Unknown(unreachable) => MaybeDone::Done(PageOutcome::Unruled(unreachable)),
            };
            self.asking.push((page.number, asked));
        }
        Ok(Some(next))
    }

    fn is_asked(&self, number: u32) -> bool {
        self.asking.iter().any(|(known, _)| *known == number)
    }

    /// Whether there may be a request for a page while the next one is waited for: nothing else is to be waited for first.
    fn may_ask_ahead(&self, page: &Url) -> bool {
        !self.pace.is_slow() && self.pace.left(Instant::now()).is_zero() && self.rules.know(page)
    }

    /// What came of asking for a page; whatever else was asked for goes on meanwhile.
    async fn answer(&mut self, number: u32) -> PageOutcome {
        let asked = poll_fn(|context| {
            let mut found = Poll::Pending;
            for (known, asking) in &mut self.asking {
                if Pin::new(&mut *asking).poll(context).is_ready() && *known == number {
                    found = Pin::new(asking)
                        .take_output()
                        .map_or(Poll::Pending, Poll::Ready);
                }
            }
            found
        })
        .await;
        self.asking.retain(|(known, _)| *known != number);
        self.pace.answered(Instant::now());
        asked
    }

    /// Reads what came, as what becomes of the page and the document that would show it.
    ///
    /// # Errors
    /// It is the first page, and no server of the public network has an answer for it.
    fn read(
        &mut self,
        page: &PendingPage,
        asked: PageOutcome,
    ) -> Result<(NextPage, Document), Failure> {
        unreached::tell(&asked);
        let failed = |status| Document::failed(page.url.as_str(), status);
        let is_first = self.frontier.is_first(page);
        let answer = match asked {
            PageOutcome::Answered(answer) => answer,
            PageOutcome::Unanswered(Error::Denied(denial @ Denial::NotGranted(_))) => {
                return Err(scrape::failure(Error::Denied(denial), PAGE_BYTES_MAX));
            }
            PageOutcome::Unanswered(error) if is_first => return Err(unreached(page, error)),
            PageOutcome::Unruled(Unreachable::NoAnswer(error)) if is_first => {
                return Err(unreached::unruled(page, error));
            }
            PageOutcome::Unanswered(Error::Denied(_) | Error::InvalidRequest(_))
            | PageOutcome::Forbidden
            | PageOutcome::Unruled(_) => {
                return Ok((NextPage::Forbidden, failed(None)));
            }
            PageOutcome::Unanswered(_) => return Ok((NextPage::Failure, failed(None))),
        };
        Ok(match answer {
            VisitAnswer::Moved { to, .. } if is_first && !self.frontier.follows(page, &to) => {
                return Err(unreached::moved(&to));
            }
            VisitAnswer::Astray { .. } if is_first => return Err(scrape::astray()),
            VisitAnswer::Moved { status, to } => (NextPage::Moved(to), failed(Some(status))),
            VisitAnswer::Astray { status } => (NextPage::Failure, failed(Some(status))),
            VisitAnswer::Failed { status, pause } => {
                if let Some(pause) = pause {
                    self.pace.pause(pause, Instant::now());
                }
                let comes_again = pause.is_some_and(|pause| pause <= RETRY_AFTER_MAX);
                let found = if comes_again {
                    NextPage::Later
                } else {
                    NextPage::Failure
                };
                (found, failed(Some(status)))
            }
            VisitAnswer::Page(response) => {
                let read = scrape::read(&response, self.format);
                let found = match self.sent_on(&read) {
                    Some(to) => NextPage::Moved(to),
                    None => NextPage::Document(self.links(page, &response)),
                };
                (found, scrape::document(&response, read))
            }
        })
    }

    /// Where a page sends its reader at once, if that is a page of the site which is not known. Otherwise it is to be read itself.
    fn sent_on(&self, read: &page::PageContent) -> Option<Url> {
        let (seconds, to) = read.refresh.as_ref()?;
        let to = Url::parse(to)
            .ok()
            .map(site::plain)
            .filter(site::is_askable)?;
        (*seconds <= scrape::REFRESH_SECONDS_MAX && self.frontier.is_news(&to)).then_some(to)
    }

    /// The links of a page that are followed. A page of failure is no page of the site to go on from.
    fn links(&self, page: &PendingPage, response: &Response) -> Vec<Url> {
        if response.is_success() && self.frontier.leads_on(page) {
            let links = outline::links(&scrape::answer(response), &page.url).links;
            links
                .into_iter()
                .filter(|link| !link.is_nofollow)
                .map(|link| link.url)
                .collect()
        } else {
            Vec::new()
        }
    }

    /// Settles a page, and keeps what it came to.
    async fn settle(&mut self, found: NextPage, document: Document) -> Result<(), Failure> {
        let shown = self.frontier.settle(found);
        let (completed, total) = self.frontier.progress();
        jobs::progress(Some(total), completed).map_err(unkept)?;
        let kept = match shown {
            Some(number) => {
                let (key, document) = (number.to_string(), fitted(document));
                let emitted = self.run.emit(&key, &document, &self.frontier).await;
                emitted.map(|_| ())
            }
            None => self.run.keep(&self.frontier).await,
        };
        kept.map_err(unkept)
    }
}

/// A document with its content cut so that its JSON form is not larger than it may be.
fn fitted(mut document: Document) -> Document {
    loop {
        let text = serde_json::to_string(&document).expect("a document has a JSON form");
        match &mut document.content {
            Some(content) if text.len() > DOCUMENT_BYTES_MAX => {
                *content = cut(content, content.chars().count() / 2).0;
                document.content_truncated = true;
            }
            Some(_) | None => return document,
        }
    }
}

fn unkept(error: WorkError) -> Failure {
    unavailable(match error {
        WorkError::Ended => "the crawl has ended",
        WorkError::Full => "the crawl exceeds its storage limit",
        WorkError::Unavailable | WorkError::Busy => "the crawl cannot be stored at the moment",
        WorkError::NotGranted(_) => NOT_GRANTED,
        WorkError::NotAcceptable(_) => "a document of the crawl cannot be stored",
    })
}
