package tools

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"barnabas/tools/options"
)

func TestUnreadableArgumentsAreExplainedAsEachOriginalDoesIt(t *testing.T) {
	known := []options.Option{{Name: "bootstrap-server", Arity: options.One, Value: "S", Doc: "Where."}}
	for how, want := range map[misread]string{
		reasonAndHelp: "boostrap-server is not a recognized option\nDid you mean --bootstrap-server?\nOption ",
		exception:     "Exception in thread \"main\" joptsimple.UnrecognizedOptionException: boostrap-server is not a recognized option\nDid you mean --bootstrap-server?\n",
		onlyReason:    "boostrap-server is not a recognized option\nDid you mean --bootstrap-server?\n",
	} {
		var out, errs bytes.Buffer
		_, code, over := face{options: known, misread: how, stdout: &out, stderr: &errs}.parse([]string{"--boostrap-server", "b"})
		assert.True(t, over)
		assert.Equal(t, 1, code)
		assert.Empty(t, out.String())
		if how == reasonAndHelp {
			assert.Contains(t, errs.String(), want)
		} else {
			assert.Equal(t, want, errs.String())
		}
	}
}
