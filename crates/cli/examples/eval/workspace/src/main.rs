const MAX_RETRIES: u32 = 5;

fn main() {
    println!("retries: {MAX_RETRIES}");
}
