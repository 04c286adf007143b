package lane

import (
	"os/exec"
	"syscall"
)

// Bind makes a program end with the test process, also when that is killed and no clean-up runs.
func Bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
