//! Variable length records.

/// Sizes of the heads of VLRs and of EVLRs.
pub(super) const HEADS: [usize; 2] = [54, 60];

/// A variable length record.
#[derive(Clone, Debug)]
pub(super) struct VariableRecord {
    pub(super) user: String,
    pub(super) id: u16,
    /// Head and data.
    pub(super) bytes: Vec<u8>,
    head: usize,
}

impl VariableRecord {
    /// Creates a VLR; `None` if it is too long.
    pub(super) fn new(user: &str, id: u16, description: &str, data: &[u8]) -> Option<Self> {
        let mut bytes = vec![0; 2];
        let text = |text: &str, size: usize| {
            let zeros = std::iter::repeat(0);
            text.bytes().chain(zeros).take(size).collect::<Vec<u8>>()
        };
        bytes.extend(text(user, 16));
        bytes.extend(id.to_le_bytes());
        bytes.extend(u16::try_from(data.len()).ok()?.to_le_bytes());
        bytes.extend(text(description, 32));
        bytes.extend_from_slice(data);
        Self::of_bytes(bytes, HEADS[0])
    }

    pub(super) fn of_bytes(bytes: Vec<u8>, head: usize) -> Option<Self> {
        let user = bytes
            .get(2..18)?
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        let user = String::from_utf8_lossy(user).into_owned();
        let id = bytes.get(18..20)?.try_into().ok()?;
        (bytes.len() >= head).then(|| Self {
            user,
            id: u16::from_le_bytes(id),
            bytes,
            head,
        })
    }

    /// Returns the data.
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
    }

    /// Returns whether the record has the waveforms of the points.
    pub(super) fn is_waveforms(&self) -> bool {
        self.user == "LASF_Spec" && self.id == u16::MAX
    }

    /// Returns whether the record describes the packing of the points, which is made anew.
    pub(super) fn is_packing(&self) -> bool {
        matches!(self.user.as_str(), "laszip encoded" | "copc")
    }
}
