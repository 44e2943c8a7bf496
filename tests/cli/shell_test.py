"""The shell's line editor, as a user on a terminal meets it.

    shell_test.py QUAIL [unittest arguments]
"""

import os
import pty
import subprocess
import time
import unittest

import cli_test


class EditedShell(cli_test.CliTest):
    """The shell on a terminal that shows what is typed, by the line editor."""

    def setUp(self):
        super().setUp()
        self.start()

    def start(self):
        self.terminal, other = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [cli_test.QUAIL, "--oracle", "oracle.jsonl", "--format", "csv"], cwd=self.path, stdin=other, stderr=other,
            stdout=subprocess.PIPE, text=True, preexec_fn=cli_test.Shell.own_terminal,
            env={**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(self.path / "state")})
        os.close(other)
        os.set_blocking(self.terminal, False)
        self.wait_for("quail> ")

    def tearDown(self):
        self.process.kill()
        self.process.communicate()
        os.close(self.terminal)

    def wait_for(self, text):
        until = time.monotonic() + 60
        while text not in self.text:
            self.assertLess(time.monotonic(), until, self.text)
            time.sleep(0.01)
            try:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
            except BlockingIOError:
                pass

    def type(self, text):
        self.text = ""
        os.write(self.terminal, text.encode())

    def end(self, keys="\x04"):
        self.type(keys)
        output = self.process.communicate(timeout=60)[0]
        return output, self.process.returncode

    def test_commands_of_model_and_timer(self):
        self.type(".timer on\n.model\n.model other\nSELECT 7 AS x;\n")
        self.wait_for(" s\r\n")
        self.wait_for("quail> ")
        self.assertIn("an oracle decides: there is no model", self.text)
        self.assertEqual(self.end(), ("none: the oracle oracle.jsonl decides\nx\n7\n", 0))

    def test_names_are_completed(self):
        self.type("CREATE TABLE wonderful (a INT);\nSELECT count(*) AS n FROM wond\t;\n")
        self.wait_for("erful;")
        self.type(".rep\t\n")
        self.wait_for("ort\r\n")
        self.type("SELECT AI_FIL\t")
        self.wait_for("TER")
        self.type("\x03")
        self.wait_for("quail> ")
        self.assertTrue(self.end()[0].startswith("n\n0\n"))

    def test_history_is_kept(self):
        self.type("SELECT 41 + 1 AS x;\n")
        self.wait_for("quail> ")
        self.assertEqual(self.end(), ("x\n42\n", 0))
        os.close(self.terminal)
        self.start()
        self.type("\x1b[A\n")
        self.wait_for("quail> ")
        self.assertEqual(self.end(), ("x\n42\n", 0))


if __name__ == "__main__":
    unittest.main()
