//! `zvf man`.

use std::{collections::BTreeSet, fs, process::Command};

use crate::{text, zvf};

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = zvf(&["man", pages.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: BTreeSet<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let command = zvf_cli::command();
    let mut wanted = BTreeSet::from(["zvf.1".to_owned()]);
    let mut commands: Vec<(String, &clap::Command)> = vec![("zvf".to_owned(), &command)];
    while let Some((name, command)) = commands.pop() {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let name = format!("{name}-{}", sub.get_name());
            wanted.insert(format!("{name}.1"));
            commands.push((name, sub));
        }
    }
    assert_eq!(found, wanted);
    for name in &found {
        let page = fs::read_to_string(pages.join(name)).unwrap();
        let long = page.lines().find(|line| line.len() > 80);
        assert_eq!(long, None, "{name}");
    }
    let mut mandoc = Command::new("mandoc");
    let lint = mandoc.args(["-T", "lint"]);
    // Judged where it is installed.
    if let Ok(found) = lint
        .args(found.iter().map(|name| pages.join(name)))
        .output()
    {
        assert_eq!(text(&found.stdout), "");
    }
    let page = fs::read(pages.join("zvf-query.1")).unwrap();
    assert!(text(&page).contains("Examples:") && text(&page).contains("keep"));
}
