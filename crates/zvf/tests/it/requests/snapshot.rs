//! Snapshots in `tests/snapshots`.

use std::{env, fs, path::Path};

/// If set to 1, tests write snapshots instead of comparing them.
const UPDATE: &str = "ZVF_UPDATE_SNAPSHOTS";

/// Compares a text with the snapshot of this name.
pub(crate) fn check(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let file = folder.join(format!("{name}.txt"));
    if env::var(UPDATE).as_deref() == Ok("1") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&file, found).unwrap();
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let difference = difference(&kept, found);
    assert!(
        kept == found,
        "{name} is not what is kept; {UPDATE}=1 keeps this instead:\n{difference}"
    );
}

/// Lists the lines that occur in only one text, below their heading.
fn difference(kept: &str, found: &str) -> String {
    let (kept, found): (Vec<_>, Vec<_>) = (kept.lines().collect(), found.lines().collect());
    let mut common = vec![vec![0_usize; found.len() + 1]; kept.len() + 1];
    for (a, left) in kept.iter().enumerate().rev() {
        for (b, right) in found.iter().enumerate().rev() {
            common[a][b] = if left == right {
                common[a + 1][b + 1] + 1
            } else {
                common[a + 1][b].max(common[a][b + 1])
            };
        }
    }
    let (mut a, mut b, mut heading) = (0, 0, "");
    let mut lines = Vec::new();
    let mut tell = |heading: &str, sign: char, line: &str| {
        let heading = format!("  {heading}");
        if lines
            .iter()
            .rev()
            .find(|line: &&String| line.starts_with("  "))
            != Some(&heading)
        {
            lines.push(heading);
        }
        lines.push(format!("{sign} {line}"));
    };
    while a < kept.len() || b < found.len() {
        if a < kept.len() && b < found.len() && kept[a] == found[b] {
            if !kept[a].starts_with(' ') {
                heading = kept[a];
            }
            (a, b) = (a + 1, b + 1);
        } else if b == found.len() || a < kept.len() && common[a + 1][b] >= common[a][b + 1] {
            tell(heading, '-', kept[a]);
            a += 1;
        } else {
            tell(heading, '+', found[b]);
            b += 1;
        }
    }
    lines.join("\n")
}

#[test]
fn differences_are_listed_line_by_line() {
    let kept = "one\n  a\n  b\ntwo\n  c\n";
    let found = "one\n  a\n  x\ntwo\n  c\n  d\n";
    let expected = "  one\n-   b\n+   x\n  two\n+   d";
    assert_eq!(difference(kept, found), expected);
    assert_eq!(difference(kept, kept), "");
}
