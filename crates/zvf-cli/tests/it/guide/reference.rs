//! `docs/cli.md`: the options of every command, generated from the program, with the same tasks in
//! Python and with notes.

use std::{collections::BTreeMap, env, fmt::Write, fs};

use clap::{Arg, Command};

use super::root;

const PAGE: &str = "docs/cli.md";

/// The Python of commands, which `python/tests/test_guide.py` runs.
const PYTHON: &str = include_str!("commands.py");
/// Paragraphs about commands.
const NOTES: &str = include_str!("notes.txt");
/// Commands about the command line itself, and demonstrations: Python has no counterpart.
const WITHOUT_PYTHON: [&str; 5] = ["completions", "demo", "doctor", "export", "man"];

const HEAD: &str = "\
# Commands

All commands and options of `zvf`, as `zvf COMMAND --help` prints them. This page is generated:
`ZVF_UPDATE_SNAPSHOTS=1 cargo test -p zvf-cli --test it guide` writes it, and `cargo test -p
zvf-cli` fails if it is stale.

The exit code is 0 on success, 1 if the command ran and its check failed (errors found by `zvf
validate`, damaged attributes in `zvf info --stats`, an empty result with `--fail-empty`), 2 on
failure or wrong usage, and 130 or 143 after SIGINT or SIGTERM. [JSON output](json.md) describes the
output of `--json`. Output is not coloured if standard error is not a terminal or `NO_COLOR` is set.

The Python blocks do the same with the package `zvf`. Each of them continues the ones before it.
[Coming from Python](python.md) introduces the package, and Python's `help`, such as
`help(zvf.open)`, describes arguments.
";

#[test]
fn the_page_matches_the_help_of_the_program() {
    let mut page = HEAD.to_owned();
    let mut command = zvf_cli::command().disable_help_subcommand(true);
    command.build();
    let mut added = Additions {
        python: sections(PYTHON, "\n# --- "),
        notes: sections(NOTES, "\n## "),
    };
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = sub.get_name();
        let has_python = added.python.contains_key(format!("zvf {name}").as_str());
        assert!(
            has_python || WITHOUT_PYTHON.contains(&name),
            "zvf {name} has no section in guide/commands.py"
        );
        write_command(sub, "zvf", 2, &mut added, &mut page);
    }
    let Additions { python, notes } = added;
    assert!(python.is_empty(), "sections of no command: {python:?}");
    assert!(notes.is_empty(), "sections of no command: {notes:?}");
    let file = root().join(PAGE);
    let found = fs::read_to_string(&file).unwrap_or_default();
    if found != page && env::var_os("ZVF_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &page).unwrap();
    } else {
        assert!(found == page, "{PAGE} is stale: set ZVF_UPDATE_SNAPSHOTS=1");
    }
}

type Sections = BTreeMap<&'static str, &'static str>;

/// Texts of the page about commands, beside their help.
struct Additions {
    python: Sections,
    notes: Sections,
}

/// Returns the section of each command, which begins with `mark` and the name of the command.
fn sections(text: &'static str, mark: &str) -> Sections {
    let sections = text
        .split(mark)
        .skip(1)
        .map(|section| section.split_once('\n').unwrap());
    sections.map(|(name, text)| (name, text.trim())).collect()
}

fn write_command(
    command: &Command,
    above: &str,
    depth: usize,
    added: &mut Additions,
    page: &mut String,
) {
    let name = format!("{above} {}", command.get_name());
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
    writeln!(page, "\n{} {name}\n", "#".repeat(depth)).unwrap();
    let about = text(command.get_about()).unwrap_or_default();
    assert!(!about.is_empty(), "{name} has no description");
    writeln!(page, "{about}.\n").unwrap();
    let rendered = command.clone().render_usage().to_string();
    let usage = rendered.trim_start_matches("Usage: ");
    writeln!(page, "```text\n{usage}\n```").unwrap();
    let after = text(command.get_after_help()).unwrap_or_default();
    let (more, examples) = after.split_once("Examples:").unwrap_or((&after, ""));
    if !more.trim().is_empty() {
        writeln!(page, "\n{}", more.trim()).unwrap();
    }
    if !examples.trim().is_empty() {
        let examples: Vec<&str> = examples.trim().lines().map(str::trim).collect();
        let kind = match command.get_name() {
            "serve" | "view" => "sh not run: ends with Ctrl-C",
            _ => "sh",
        };
        writeln!(page, "\n```{kind}\n{}\n```", examples.join("\n")).unwrap();
    }
    if let Some(code) = added.python.remove(name.as_str()) {
        writeln!(page, "\n```python\n{code}\n```").unwrap();
    }
    if let Some(notes) = added.notes.remove(name.as_str()) {
        writeln!(page, "\n{notes}").unwrap();
    }
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| argument.get_id() != "help" && !argument.is_hide_set())
        .collect();
    let headings: Vec<Option<&str>> = arguments.iter().map(|a| a.get_help_heading()).collect();
    let mut done = Vec::new();
    for heading in headings {
        if done.contains(&heading) {
            continue;
        }
        done.push(heading);
        let heading_text = heading.unwrap_or("Option");
        writeln!(page, "\n| {heading_text} | description |\n|---|---|").unwrap();
        for argument in &arguments {
            if argument.get_help_heading() == heading {
                write_argument(argument, page);
            }
        }
    }
    // Those have sections of their own.
    let is_plan = name == "zvf task plan";
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for sub in subs.filter(|_| !is_plan) {
        write_command(sub, &name, depth + 1, added, page);
    }
}

fn write_argument(argument: &Arg, page: &mut String) {
    let escaped = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut help = argument
        .get_long_help()
        .or_else(|| argument.get_help())
        .unwrap()
        .to_string()
        .replace(
            "

", " ",
        )
        .trim_end_matches('.')
        .to_owned();
    let is_flag = !argument.get_action().takes_values();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !is_flag && !values.is_empty() {
        write!(help, ". One of {}", values.join(", ")).unwrap();
    }
    let defaults = argument.get_default_values();
    if !is_flag && let [default] = defaults {
        write!(help, ". Default: `{}`", default.to_str().unwrap()).unwrap();
    }
    let name = argument.to_string();
    writeln!(page, "| `{}` | {} |", escaped(&name), escaped(&help)).unwrap();
}
