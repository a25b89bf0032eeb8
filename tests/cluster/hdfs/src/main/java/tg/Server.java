package tg;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.io.nativeio.NativeIO;

/**
 * A NameNode and a DataNode with one RAM disk and one disk, in this JVM.
 *
 * <p>args: BASE (a folder on the disk), RAM (a folder on tmpfs), then name=value for the configuration. Prints
 * "READY host:port" and runs until standard input closes.
 */
public class Server {
  public static void main(String[] args) throws Exception {
    String base = args[0], ram = args[1];
    Configuration conf = new Configuration();
    for (int i = 2; i < args.length; i++) {
      int at = args[i].indexOf('=');
      conf.set(args[i].substring(0, at), args[i].substring(at + 1));
    }
    // A RAM disk needs a limit of locked memory, and that needs Hadoop's native library, which no jar has. The memory
    // is counted and never locked, so nothing is lost by saying that it could be.
    NativeIO.POSIX.setCacheManipulator(new NativeIO.POSIX.NoMlockCacheManipulator());
    Files.createDirectories(Path.of(ram));
    Files.createDirectories(Path.of(base, "disk"));
    conf.set("dfs.datanode.data.dir", "[RAM_DISK]file:" + ram + ",[DISK]file:" + base + "/disk");
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(conf, new File(base)).numDataNodes(1).manageDataDfsDirs(false).build();
    cluster.waitActive();
    System.out.println("READY 127.0.0.1:" + cluster.getNameNodePort());
    System.out.flush();
    while (System.in.read() >= 0) {}
    cluster.shutdown();
    System.exit(0);
  }
}
