import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.Arrays;
import java.util.Base64;

/**
 * Runs main classes one after the other in one JVM, since starting one for each is most of the time that they take. A line of standard input is a class and its arguments, separated by US
 * characters; a line of standard output is the exit code, and what went to standard output and to standard error until then, in base 64.
 */
public class EachTool {
    private static final PrintStream answers = System.out;
    private static final Switched out = new Switched();
    private static final Switched err = new Switched();

    /** Keeps what is written until the tool ends. Streams are set once: Scala remembers the first that it sees. */
    static final class Switched extends OutputStream {
        private ByteArrayOutputStream kept;

        synchronized void keep() {
            kept = new ByteArrayOutputStream();
        }

        synchronized String taken() {
            String text = Base64.getEncoder().encodeToString(kept.toByteArray());
            kept = null;
            return text;
        }

        @Override
        public synchronized void write(int b) {
            if (kept != null) {
                kept.write(b);
            }
        }

        @Override
        public synchronized void write(byte[] b, int from, int n) {
            if (kept != null) {
                kept.write(b, from, n);
            }
        }
    }

    /** Ends a tool where it ends its process. What it prints after that, because it catches everything, does not count. */
    static final class NoExit extends SecurityManager {
        private String answer;

        synchronized void ends(int status) {
            if (answer == null) {
                System.out.flush();
                System.err.flush();
                answer = status + " " + out.taken() + " " + err.taken();
            }
        }

        @Override
        public void checkExit(int status) {
            ends(status);
            throw new SecurityException("exit " + status);
        }

        @Override
        public void checkPermission(Permission permission) {
        }

        @Override
        public void checkPermission(Permission permission, Object context) {
        }
    }

    public static void main(String[] none) throws Exception {
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\u001f", -1);
            run(words[0], Arrays.copyOfRange(words, 1, words.length));
        }
        System.setSecurityManager(null);
        Runtime.getRuntime().halt(0);
    }

    private static void run(String name, String[] args) throws Exception {
        out.keep();
        err.keep();
        NoExit manager = new NoExit();
        System.setSecurityManager(manager);
        int code = 0;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            code = 1;
            System.err.print("Exception in thread \"main\" ");
            e.getCause().printStackTrace();
        } catch (ReflectiveOperationException e) {
            code = 1;
            System.err.println("Error: Could not find or load main class " + name);
        }
        manager.ends(code);
        answers.println(manager.answer);
        answers.flush();
    }
}
