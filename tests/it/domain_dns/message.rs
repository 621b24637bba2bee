//! Answers of a resolver, put together byte by byte.

/// An answer under construction.
pub(super) struct Message {
    head: u16,
    question: Vec<u8>,
    answers: Vec<Vec<u8>>,
    authorities: Vec<Vec<u8>>,
}

impl Message {
    /// With the second pair of bytes, and the question as it came.
    pub(super) fn new(head: u16, question: &[u8]) -> Self {
        Self {
            head,
            question: question.to_vec(),
            answers: Vec::new(),
            authorities: Vec::new(),
        }
    }

    pub(super) fn answer(mut self, record: Vec<u8>) -> Self {
        self.answers.push(record);
        self
    }

    pub(super) fn authority(mut self, record: Vec<u8>) -> Self {
        self.authorities.push(record);
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = |records: &[Vec<u8>]| {
            u16::try_from(records.len())
                .expect("few records")
                .to_be_bytes()
        };
        let counts = [
            [0, 1],
            count(&self.answers),
            count(&self.authorities),
            [0, 0],
        ]
        .concat();
        let head = [vec![0, 0], self.head.to_be_bytes().to_vec(), counts].concat();
        [
            head,
            self.question.clone(),
            self.answers.concat(),
            self.authorities.concat(),
        ]
        .concat()
    }

    /// Without so many bytes of its end.
    pub(super) fn cut(&self, bytes: usize) -> Vec<u8> {
        let mut whole = self.bytes();
        whole.truncate(whole.len() - bytes);
        whole
    }
}

/// A record of class IN.
pub(super) fn record(owner: &str, code: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len())
        .expect("little data")
        .to_be_bytes();
    let head = [
        code.to_be_bytes().as_slice(),
        &[0, 1],
        &ttl.to_be_bytes(),
        &length,
    ]
    .concat();
    [name(owner), head, data.to_vec()].concat()
}

pub(super) fn cname(owner: &str, ttl: u32, target: &str) -> Vec<u8> {
    record(owner, 5, ttl, &name(target))
}

fn name(text: &str) -> Vec<u8> {
    let label = |label: &str| {
        [
            &[u8::try_from(label.len()).expect("a label")],
            label.as_bytes(),
        ]
        .concat()
    };
    text.split('.').flat_map(label).chain([0]).collect()
}
