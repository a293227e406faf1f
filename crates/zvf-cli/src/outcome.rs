//! The result of a command: what it prints and how it exits.

/// Output of a finished command.
#[derive(Debug, Default)]
pub(crate) struct CommandOutcome {
    /// Text for standard output; nothing is printed if it is empty.
    pub(crate) text: String,
    /// Lines for standard error, printed before the text.
    pub(crate) warnings: Vec<String>,
    /// Suggestions for the next run, printed to standard error after the text.
    pub(crate) hints: Vec<String>,
    /// True if the command ran and its result is negative: the process exits with 1.
    pub(crate) is_negative: bool,
}

/// Returns the warning about a change that is committed but could not be finished, for a reason.
pub(crate) fn unfinished_warning(why: Option<&String>) -> Option<String> {
    why.map(|why| {
        format!(
            "the change is committed and complete for readers, but files could not be tidied up; the \
             next change does that: {why}"
        )
    })
}

impl From<String> for CommandOutcome {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}
