//! The cells and the vertices of a box in the store of the decoder.

use browser::Level;

/// Returns a file of a tar archive.
fn file(mut image: &'static [u8], path: &str) -> &'static [u8] {
    loop {
        let (header, rest) = image.split_at(512);
        let size = std::str::from_utf8(&header[124..135]).unwrap();
        let size = usize::from_str_radix(size, 8).unwrap();
        let name = std::str::from_utf8(&header[..100]).unwrap();
        if name.trim_end_matches('\0') == format!("./{path}") {
            return &rest[..size];
        }
        image = &rest[size.next_multiple_of(512)..];
    }
}

#[test]
fn a_box_is_a_list_of_cells_and_each_cell_a_list_of_positions() {
    let image = include_bytes!("../../decoder/tests/fibres.tar");
    let vertices = file(image, "0/vertices/zarr.json");
    let level = Level::parse(file(image, "zarr.json"), vertices).unwrap();
    let cells = level.cells(&[11.0, 1.0, 1.0], &[18.0, 4.0, 4.0]).unwrap();
    assert_eq!(cells, ["0/vertices/c/1/0/0"]);
    let cell = file(image, &cells[0]);
    let expected = [12.0, 2.0, 3.0, 18.0, 4.0, 3.0];
    assert_eq!(level.positions(cell.to_vec()).unwrap(), expected);
    assert_eq!(level.cells(&[0.0; 3], &[20.0; 3]).unwrap().len(), 3);
    assert!(level.positions(vec![0; 7]).is_err());
    // The same array with the codec zstd, and the cell as the program `zstd` compresses it.
    let vertices = std::str::from_utf8(vertices).unwrap();
    let zstd = "\"vlen-bytes\"}, {\"name\": \"zstd\"";
    let vertices = vertices.replace("\"vlen-bytes\"", zstd);
    let level = Level::parse(file(image, "zarr.json"), vertices.as_bytes()).unwrap();
    let mut cell = include_bytes!("cell.zst").to_vec();
    assert_eq!(level.positions(cell.clone()).unwrap(), expected);
    cell.pop();
    assert!(level.positions(cell).is_err());
}
