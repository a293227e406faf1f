"""Files of `testdata` that programs write: with `--update` they are written, else compared byte for byte."""

import gzip

import codec_files
import describe
import examples
from corpus import DESCRIPTION, TESTDATA

ARCHIVED = "\"archive\": "
ARCHIVE, PREVIEW = TESTDATA / "zvf-examples.tar.gz", TESTDATA / "zvf-10.tar.gz"


def test_codecs(tmp_path, update, tell):
    """The encodings of the reference."""
    for codec in codec_files.CODECS:
        codec_files.write(tmp_path, codec)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if update:
        for name, data in made.items():
            (TESTDATA / "codec" / name).write_bytes(data)
    found = {path.name: path.read_bytes() for path in (TESTDATA / "codec").iterdir()}
    different = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
    assert not different, f"the reference writes others: {different}; `cargo xtask fixtures` rewrites them"
    tell(f"{len(made)} files are what the reference writes")


def test_examples(zvf, tmp_path, update, tell):
    """The examples of the specification, in 0.9 and 0.10. Archives that differ only in compression are equal."""
    ways = {
        ARCHIVE: lambda: examples.made(zvf, tmp_path / "examples"),
        PREVIEW: lambda: examples.preview(zvf, tmp_path / "preview", ARCHIVE),
    }
    for archive, make in ways.items():
        made = make()
        is_same = archive.exists() and gzip.decompress(archive.read_bytes()) == made
        if update and not is_same:
            archive.write_bytes(gzip.compress(made, 9, mtime=0))
        assert is_same or update, f"{archive.name} is not what is made now; `cargo xtask fixtures` makes it"
    tell(f"{len(examples.EXAMPLES)} examples are what is made of them, in 0.9 and 0.10")


def test_description(tmp_path, update, tell):
    made = describe.described(tmp_path)
    if update:
        DESCRIPTION.write_text(made)
    assert DESCRIPTION.read_text() == made, "stores.json is not what the stores are; `cargo xtask fixtures` writes it"
    tell(f"{made.count(ARCHIVED)} stores are as {DESCRIPTION.name} says")
