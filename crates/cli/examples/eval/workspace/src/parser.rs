// TODO: handle empty lines
pub fn parse_line(line: &str) -> Vec<&str> {
    line.split(',').collect()
}
