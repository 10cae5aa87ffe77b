//! Mail, to a small SMTP server of the test.

use archon_notify::{EmailChannel, SmtpOptions};
use archon_types::{NotificationChannel, Secret};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::mail_result;

/// Takes one mail and returns its lines.
async fn take_mail(listener: TcpListener) -> Vec<String> {
    let (stream, _) = listener.accept().await.unwrap();
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 test ESMTP\r\n").await.unwrap();
    let (mut mail, mut is_data) = (Vec::new(), false);
    while let Some(line) = lines.next_line().await.unwrap() {
        let answer: &[u8] = match line.as_str() {
            "." if is_data => {
                is_data = false;
                b"250 taken\r\n"
            }
            _ if is_data => {
                mail.push(line);
                continue;
            }
            "DATA" => {
                is_data = true;
                b"354 go on\r\n"
            }
            "QUIT" => {
                write.write_all(b"221 bye\r\n").await.unwrap();
                break;
            }
            line if line.starts_with("EHLO") => b"250-test\r\n250 8BITMIME\r\n",
            _ => b"250 ok\r\n",
        };
        write.write_all(answer).await.unwrap();
        if !is_data && !mail.is_empty() {
            break;
        }
    }
    mail
}

// spec: TR-09
#[tokio::test]
async fn mail_is_plain_text_with_the_subject_and_an_id() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = SmtpOptions::new("127.0.0.1").port(listener.local_addr().unwrap().port()).without_tls();
    let server = tokio::spawn(take_mail(listener));
    let channel = EmailChannel::new(&options, "Archon <archon@example.com>", "anna@example.com").unwrap();
    channel.send(&mail_result("Two mails.\nBcc: evil@example.com")).await.unwrap();
    let mail = server.await.unwrap();
    let (head, body) = mail.split_at(mail.iter().position(String::is_empty).unwrap());
    assert!(head.contains(&"Subject: mail done".to_owned()), "{head:?}");
    assert!(head.iter().any(|line| line.starts_with("Message-ID: <note.")));
    // So that no program answers it, and no mailbox of Archon takes it for an event.
    assert!(head.contains(&"Auto-Submitted: auto-generated".to_owned()), "{head:?}");
    assert!(!head.iter().any(|line| line.starts_with("Bcc")));
    assert!(body.contains(&"> Two mails.".to_owned()));
}

#[test]
fn server_beyond_this_machine_needs_tls() {
    let options = SmtpOptions::new("mail.example.com").account("anna", Secret::from("x")).without_tls();
    let error = EmailChannel::new(&options, "a@example.com", "b@example.com").err().unwrap();
    assert_eq!(
        error.to_string(),
        "the channel email cannot be used: mail.example.com is not this machine, so it needs TLS: leave out \
         `without_tls`"
    );
    let wrong = EmailChannel::new(&SmtpOptions::new("mail.example.com"), "nobody", "b@example.com").err();
    assert!(wrong.unwrap().to_string().contains("the address \"nobody\" is wrong"));
}
