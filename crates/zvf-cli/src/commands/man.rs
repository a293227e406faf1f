//! `zvf man`: writes manual pages.

use std::{
    borrow::Cow,
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use clap_mangen::Man;

use crate::{
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
};

/// Write a manual page for each command into a folder, such as zvf-query.1
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf man man1")]
pub(crate) struct ManArgs {
    /// Folder; created if it does not exist.
    folder: PathBuf,
}

/// Writes the manual pages of `command`.
pub(crate) fn run(
    arguments: &ManArgs,
    command: clap::Command,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let folder = &arguments.folder;
    let told = |error: io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    // The help subcommand would repeat every page.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder, &date()).map_err(told)?;
    let pages = len_u64(fs::read_dir(folder).map_err(told)?.count());
    let files = count_noun(pages, "file", "files");
    Ok(CommandOutcome::from(format!(
        "{}: {files}",
        folder.display()
    )))
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path, date: &str) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(sub, folder, date)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(date)
        .source(concat!("zvf ", env!("CARGO_PKG_VERSION")))
        .manual("zvf");
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = tidied(&String::from_utf8_lossy(&text));
    fs::write(folder.join(page.get_filename()), text)
}

/// Maximum number of bytes of a line of text, above which `mandoc -T lint` asks for a shorter one.
const MAX_LINE: usize = 80;

/// Returns the parts of a line of text, divided at blanks. Where a part would start with a period or an
/// apostrophe, which mark requests there, `\&` is in front of it.
fn wrapped(line: &str) -> Vec<Cow<'_, str>> {
    let mut parts = Vec::new();
    let mut rest = Cow::Borrowed(line);
    while rest.len() > MAX_LINE && !rest.starts_with('.') {
        let indent = rest.len() - rest.trim_start().len();
        let mut breaks = rest.match_indices(' ').filter_map(|(at, _)| {
            let (part, after) = (rest.get(..at)?, rest.get(at + 1..)?);
            let is_break = at > indent && !part.ends_with([' ', '\\']) && !after.starts_with(' ');
            is_break.then_some((part, after))
        });
        let first = breaks.next();
        let last = breaks.take_while(|(part, _)| part.len() <= MAX_LINE).last();
        let Some((part, after)) = last.or(first) else {
            break;
        };
        let mark = if after.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        let next = Cow::Owned(format!("{mark}{after}"));
        parts.push(Cow::Owned(part.to_owned()));
        rest = next;
    }
    parts.push(rest);
    parts
}

/// Returns a page in short lines, without blanks at the ends of lines, and without breaks beside vertical
/// space, which have no effect. An empty line is vertical space.
fn tidied(page: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    for line in page.lines().map(str::trim_end).flat_map(wrapped) {
        let line = if line.is_empty() { ".sp".into() } else { line };
        if line == ".sp" {
            lines.pop_if(|before| *before == ".br");
        }
        let is_idle = line == ".br" && lines.last().is_some_and(|before| *before == ".sp");
        if !is_idle {
            lines.push(line);
        }
    }
    lines.push("".into());
    lines.join("\n")
}

/// Returns the date of the pages: `SOURCE_DATE_EPOCH`, so that builds are reproducible, or today.
fn date() -> String {
    let given = env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|seconds| seconds.parse::<u64>().ok());
    let seconds = given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.as_secs())
    });
    date_of(seconds / 86_400)
}

/// Returns the date of a day, counted from the first of 1970.
fn date_of(day: u64) -> String {
    // Years are counted from March, so that a leap day is the last of a year; 719,468 days of them precede
    // 1970, and a cycle of 400 years has 146,097.
    let day = day + 719_468;
    let (cycle, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{date:02}", 400 * cycle + year + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided_at_blanks() {
        let words = "0123456789 ".repeat(12);
        let parts = wrapped(words.trim_end());
        assert_eq!(
            parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
            [76, 54]
        );
        let special = format!("  {} .x {}", "a".repeat(85), "b".repeat(80));
        let parts = wrapped(&special);
        assert_eq!(parts[1..], ["\\&.x".to_owned(), "b".repeat(80)]);
        let whole = format!(".TH {}", "a ".repeat(60));
        assert_eq!(wrapped(&whole), [whole.as_str()]);
    }

    #[test]
    fn days_have_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_786, "2026-11-29"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_of(day), date);
        }
    }
}
