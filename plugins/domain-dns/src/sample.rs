//! Messages for the tests of this crate, put together byte by byte.

/// An answer under construction: NOERROR, with RD and RA.
pub(crate) struct Sample {
    head: u16,
    question: Vec<u8>,
    sections: [Vec<Vec<u8>>; 3],
}

impl Sample {
    pub(crate) fn of(name: &str, code: u16) -> Self {
        let question = [name_bytes(name), code.to_be_bytes().to_vec(), vec![0, 1]].concat();
        Self {
            head: 0x8180,
            question,
            sections: [Vec::new(), Vec::new(), Vec::new()],
        }
    }

    pub(crate) fn head(mut self, head: u16) -> Self {
        self.head = head;
        self
    }

    pub(crate) fn answer(mut self, record: Vec<u8>) -> Self {
        self.sections[0].push(record);
        self
    }

    pub(crate) fn authority(mut self, record: Vec<u8>) -> Self {
        self.sections[1].push(record);
        self
    }

    pub(crate) fn additional(mut self, record: Vec<u8>) -> Self {
        self.sections[2].push(record);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0];
        bytes.extend(self.head.to_be_bytes());
        bytes.extend([0, 1]);
        for section in &self.sections {
            let count = u16::try_from(section.len()).expect("few records");
            bytes.extend(count.to_be_bytes());
        }
        bytes.extend(&self.question);
        bytes.extend(self.sections.iter().flatten().flatten());
        bytes
    }
}

/// A record of class IN.
pub(crate) fn record(owner: &str, code: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("little data");
    let head = [code.to_be_bytes(), [0, 1]].concat();
    [
        name_bytes(owner),
        head,
        ttl.to_be_bytes().to_vec(),
        length.to_be_bytes().to_vec(),
        data.to_vec(),
    ]
    .concat()
}

/// A name without compression; a text without labels is the root.
pub(crate) fn name_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).expect("a label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
