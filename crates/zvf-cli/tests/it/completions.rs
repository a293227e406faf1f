//! `zvf completions`.

use crate::{text, zvf};

#[test]
fn each_shell_has_a_script() {
    for (shell, start) in [
        ("bash", "_zvf()"),
        ("zsh", "#compdef zvf"),
        ("fish", "# Print"),
    ] {
        let output = zvf(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        assert!(script.starts_with(start), "{shell}: {}", &script[..80]);
        for word in [
            "keep-going",
            "append",
            "edit",
            "delete",
            "compact",
            "dry-run",
            "retries",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(zvf(&["completions", "cmd"]).status.code(), Some(2));
}
